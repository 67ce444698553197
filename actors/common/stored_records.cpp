#include "actors/common/stored_records.hpp"

#include "base/sha256.hpp"
#include "proto/shard_snapshot.pb.h"

#include <algorithm>
#include <bit>
#include <dlrun/check.hpp>

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

} // namespace

std::string encode(const snapshot_extra& extra) {
  records::ShardSnapshot message;
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
  return message.SerializeAsString();
}

result<snapshot_extra> decode_snapshot_extra(std::span<const std::byte> bytes,
                                             const engine::shard_range& range, std::size_t image_floats,
                                             std::size_t metric_sums) {
  records::ShardSnapshot message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return fail(error_code::storage_damaged, "the description of the snapshot cannot be read");
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

state_source floats_of(persistence::snapshot_reader& reader) {
  return [&reader](std::span<float> into) -> result<void> {
    const auto got = reader.read(std::as_writable_bytes(into));
    if (!got) return tl::unexpected(got.error());
    if (*got == into.size_bytes()) return {};
    return fail(error_code::storage_damaged,
                fmt::format("the snapshot of version {} is too short", reader.info().version));
  };
}

result<void> check_read_to_end(persistence::snapshot_reader& reader) {
  std::byte beyond{};
  const auto rest = reader.read({&beyond, 1});
  if (!rest) return tl::unexpected(rest.error());
  if (*rest == 0) return {};
  return fail(error_code::storage_damaged,
              fmt::format("the snapshot of version {} is too long", reader.info().version));
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

engine::step_shape shape_of(const data::sampler& sampler, step_id step, std::uint64_t revision,
                            const std::vector<protocol::parked_slot>& parked, std::uint64_t coupled) {
  engine::step_shape shape{revision, sampler.records_in_step(step), sampler.slots(step),
                           std::bit_cast<double>(coupled)};
  for (slot_id slot{0}; slot.value < sampler.slots(step) && !parked.empty(); ++slot.value) {
    const auto records = sampler.records_in_slot(step, slot);
    const auto left = protocol::records_left(parked, step, slot, records);
    shape.records -= records - left;
    if (left == 0) --shape.slots;
  }
  return shape;
}

std::vector<protocol::parked_slot> parked_on(const protocol::history& history, timeline_id timeline) {
  protocol::history then;
  for (const auto& entry : history)
    if (entry.timeline <= timeline) then.push_back(entry);
  return protocol::parked_slots(then);
}

std::vector<base_version> bases_for(const persistence::shard_store& store, version_id version) {
  std::vector<base_version> all{{version_id{0}, false}};
  for (const auto& snapshot : store.snapshots())
    if (snapshot.version <= version) all.push_back({snapshot.version, true});
  std::ranges::reverse(all);
  std::stable_partition(all.begin(), all.end(), [&](const auto& one) { return one.version < version; });
  std::erase_if(all, [&](const auto& one) {
    for (auto step = step_from(one.version); version_after(step) <= version; ++step.value)
      if (!store.read_head(step)) return true;
    return false;
  });
  return all;
}

std::string block_digest(std::uint32_t number, std::span<const float> parameters,
                         std::span<const float> state) {
  base::sha256 sum;
  sum.add(std::as_bytes(std::span{&number, 1}));
  sum.add(std::as_bytes(parameters));
  sum.add(std::as_bytes(state));
  return sum.finish();
}

} // namespace dlrun::common
