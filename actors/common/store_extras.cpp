#include "actors/common/store_extras.hpp"

#include "proto/shard_snapshot.pb.h"

#include <fmt/format.h>

namespace dlrun::common {
namespace {

constexpr std::uint32_t snapshot_format = 2;

void put(const protocol::applied_ledger& ledger, records::AppliedLedger& into) {
  into.set_steps_applied(ledger.steps_applied);
  into.set_steps_redone(ledger.steps_redone);
  into.set_samples_applied(ledger.samples_applied);
  into.set_samples_missing(ledger.samples_missing);
  into.set_samples_duplicated(ledger.samples_duplicated);
}

protocol::applied_ledger ledger_from(const records::AppliedLedger& from) {
  return {from.steps_applied(), from.steps_redone(), from.samples_applied(), from.samples_missing(),
          from.samples_duplicated()};
}

void put(const snapshot_extra& extra, records::ShardSnapshot& message) {
  put(extra.ledger, *message.mutable_ledger());
  message.set_format(snapshot_format);
  message.set_floats(extra.floats);
  message.set_first_block(extra.range.first_block);
  message.set_last_block(extra.range.last_block);
  message.set_has_metrics(extra.metrics.has_value());
  if (extra.metrics) {
    message.set_epoch(extra.metrics->epoch);
    message.set_loss_sum_bits(extra.metrics->loss_sum_bits);
    message.set_records(extra.metrics->records);
    message.set_step_loss_bits(extra.metrics->step_loss_bits);
    for (const auto bits : extra.metrics->sum_bits) message.add_sum_bits(bits);
  }
}

result<snapshot_extra> extra_from(const records::ShardSnapshot& message, const engine::shard_range& range,
                                  std::size_t image_floats, std::size_t metric_sums) {
  if (message.format() != snapshot_format)
    return fail(error_code::bad_usage, fmt::format("the snapshot has format {}, this version reads only {}: "
                                                   "use the version that wrote it",
                                                   message.format(), snapshot_format));
  if (message.floats() != image_floats || message.first_block() != range.first_block ||
      message.last_block() != range.last_block)
    return fail(error_code::bad_usage,
                fmt::format("the snapshot is of blocks [{}, {}) with {} floats, this PS shard has [{}, {}) "
                            "with {}: it is of another model or another number of PS shards",
                            message.first_block(), message.last_block(), message.floats(), range.first_block,
                            range.last_block, image_floats));
  snapshot_extra extra{range, message.floats(), std::nullopt, ledger_from(message.ledger())};
  if (message.has_metrics())
    extra.metrics = protocol::training_metrics{message.epoch(),
                                               message.loss_sum_bits(),
                                               message.records(),
                                               message.step_loss_bits(),
                                               {message.sum_bits().begin(), message.sum_bits().end()}};
  if (extra.metrics && extra.metrics->sum_bits.size() != metric_sums)
    return fail(error_code::bad_usage,
                fmt::format("the snapshot has {} sums of metrics, this job has {}: it is of another model",
                            extra.metrics->sum_bits.size(), metric_sums));
  return extra;
}

} // namespace

std::string encode(const snapshot_extra& extra) {
  records::ShardSnapshot message;
  put(extra, message);
  return message.SerializeAsString();
}

result<snapshot_extra> decode_snapshot_extra(std::span<const std::byte> bytes,
                                             const engine::shard_range& range, std::size_t image_floats,
                                             std::size_t metric_sums) {
  records::ShardSnapshot message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return fail(error_code::storage_damaged, "the description of the snapshot cannot be read");
  return extra_from(message, range, image_floats, metric_sums);
}

std::string encode(const retained_extra& extra) {
  records::RetainedVersion message;
  put(extra.snapshot, *message.mutable_snapshot());
  for (const auto& [step, partials] : extra.partials) {
    auto& norms = *message.add_norms();
    norms.set_step(step.value);
    norms.mutable_partials()->Add(partials.begin(), partials.end());
  }
  return message.SerializeAsString();
}

result<retained_extra> decode_retained_extra(std::string_view bytes, const engine::shard_range& range,
                                             std::size_t image_floats, std::size_t metric_sums) {
  records::RetainedVersion message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return fail(error_code::storage_damaged, "what is beside a version in memory cannot be read");
  auto snapshot = extra_from(message.snapshot(), range, image_floats, metric_sums);
  if (!snapshot) return tl::unexpected(snapshot.error());
  retained_extra extra{std::move(*snapshot), {}};
  for (const auto& norms : message.norms())
    extra.partials[{norms.step()}] = {norms.partials().begin(), norms.partials().end()};
  return extra;
}

std::string encode(const step_extra& extra) {
  records::StepRecord message;
  message.set_revision(extra.revision);
  message.set_coupled(extra.coupled);
  for (const auto one : extra.partials) message.add_partials(one);
  put(extra.ledger, *message.mutable_ledger());
  return message.SerializeAsString();
}

result<step_extra> decode_step_extra(std::string_view bytes) {
  records::StepRecord message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return fail(error_code::storage_damaged, "a record of the log cannot be read");
  return step_extra{message.revision(),
                    message.coupled(),
                    {message.partials().begin(), message.partials().end()},
                    ledger_from(message.ledger())};
}

} // namespace dlrun::common
