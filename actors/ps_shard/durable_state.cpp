#include "actors/ps_shard/durable_state.hpp"

#include "actors/common/clock.hpp"
#include "base/crc32c.hpp"
#include "proto/shard_snapshot.pb.h"

#include <algorithm>
#include <dlrun/check.hpp>
#include <map>
#include <mutex>
#include <optional>

namespace dlrun::ps_shard {
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

/// @returns what came with a snapshot that is of this shard of this model; bad_usage for a whole one of
/// another version or job, which is not ours to drop.
result<snapshot_extra> decode(std::span<const std::byte> bytes, const shard_parameters& parameters) {
  records::ShardSnapshot message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return fail(error_code::storage_damaged, "the description of the snapshot cannot be read");
  if (message.format() != snapshot_format)
    return fail(error_code::bad_usage, fmt::format("the snapshot has format {}, this version reads only {}: "
                                                   "use the version that wrote it",
                                                   message.format(), snapshot_format));
  const auto& range = parameters.range();
  if (message.floats() != parameters.image_floats() || message.first_block() != range.first_block ||
      message.last_block() != range.last_block)
    return fail(error_code::bad_usage,
                fmt::format("the snapshot is of blocks [{}, {}) with {} floats, this PS shard has [{}, {}) "
                            "with {}: it is of another model or another number of PS shards",
                            message.first_block(), message.last_block(), message.floats(), range.first_block,
                            range.last_block, parameters.image_floats()));
  snapshot_extra extra{range, message.floats(), std::nullopt, ledger_from(message.ledger())};
  if (message.has_metrics())
    extra.metrics = protocol::training_metrics{message.epoch(),
                                               message.loss_sum_bits(),
                                               message.records(),
                                               message.step_loss_bits(),
                                               {message.sum_bits().begin(), message.sum_bits().end()}};
  if (extra.metrics && extra.metrics->sum_bits.size() != parameters.metric_sums())
    return fail(error_code::bad_usage,
                fmt::format("the snapshot has {} sums of metrics, this job has {}: it is of another model",
                            extra.metrics->sum_bits.size(), parameters.metric_sums()));
  return extra;
}

/// The numbers of a snapshot, in the order in which it has them.
state_source floats_of(persistence::snapshot_reader& reader) {
  return [&reader](std::span<float> into) -> result<void> {
    const auto got = reader.read(std::as_writable_bytes(into));
    if (!got) return tl::unexpected(got.error());
    if (*got == into.size_bytes()) return {};
    return fail(error_code::storage_damaged,
                fmt::format("the snapshot of version {} is too short", reader.info().version));
  };
}

/// Reading to the end verifies the total.
result<void> check_read_to_end(persistence::snapshot_reader& reader) {
  std::byte beyond{};
  const auto rest = reader.read({&beyond, 1});
  if (!rest) return tl::unexpected(rest.error());
  if (*rest == 0) return {};
  return fail(error_code::storage_damaged,
              fmt::format("the snapshot of version {} is too long", reader.info().version));
}

/// The root of a logged step, read and verified block by block as it is applied. Thread-safe.
class logged_root {
public:
  explicit logged_root(const persistence::payload_reader& payload)
      : payload_(payload) {}

  /// Floats [begin, end), valid until this thread's next call; anything where they cannot be read.
  std::span<const float> part(std::uint64_t begin, std::uint64_t end) {
    thread_local std::vector<float> floats;
    floats.resize(end - begin);
    const auto bytes = std::as_writable_bytes(std::span{floats});
    const auto crc = payload_.read(begin * sizeof(float), bytes);
    const std::lock_guard lock{mutex_};
    if (crc)
      parts_.emplace(begin, std::pair{bytes.size(), *crc});
    else
      failed_ = crc.error();
    return floats;
  }

  /// Whether all parts were read, and are what was written.
  result<void> check() const {
    const std::lock_guard lock{mutex_};
    if (failed_) return tl::unexpected(*failed_);
    std::uint32_t whole = 0;
    for (const auto& [begin, part] : parts_) whole = base::crc32c_combine(whole, part.second, part.first);
    return payload_.check(whole);
  }

private:
  const persistence::payload_reader& payload_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::pair<std::uint64_t, std::uint32_t>> parts_; ///< by place: bytes, their CRC
  std::optional<error> failed_;
};

/// One attempt to stand at a version.
class attempt {
public:
  attempt(persistence::shard_store& store, shard_parameters& parameters, const data::sampler& sampler,
          const protocol::history& history)
      : store_(store)
      , parameters_(parameters)
      , sampler_(sampler)
      , history_(history)
      , timeline_(protocol::newest_timeline(history)) {}

  result<restored_numbers> from(version_id base, bool is_snapshot, version_id version) {
    const auto begin = common::now();
    parameters_.withdraw();
    if (auto loaded = is_snapshot ? load(base) : load_initial(); !loaded)
      return tl::unexpected(loaded.error());
    if (auto replayed = replay_all(step_from(base), step_from(version)); !replayed)
      return tl::unexpected(replayed.error());
    const auto steps = version.value - base.value;
    return restored_numbers{version, steps > 0, metrics_.sums(), ledger_, steps, common::now() - begin};
  }

private:
  result<void> load_initial() { return parameters_.reset(timeline_); }

  result<void> load(version_id base) {
    auto reader = store_.open_snapshot(base);
    if (!reader) return tl::unexpected(reader.error());
    const auto extra = decode(reader->metadata(), parameters_);
    if (!extra) return tl::unexpected(extra.error());
    metrics_ = epoch_metrics{extra->metrics};
    ledger_ = extra->ledger;
    const auto loaded = parameters_.load(timeline_, base, floats_of(*reader));
    return loaded ? check_read_to_end(*reader) : loaded;
  }

  result<void> replay_all(step_id first, step_id end) {
    for (auto step = first; step < end; ++step.value)
      if (auto replayed = replay(step); !replayed) return replayed;
    return {};
  }

  result<void> replay(step_id step) {
    const auto payload = store_.open_payload(step);
    if (!payload) return tl::unexpected(payload.error());
    const auto& head = payload->head();
    if (head.payload_bytes != parameters_.range().size * sizeof(float))
      return fail(error_code::storage_damaged,
                  fmt::format("the log record of step {} has {} bytes, not {}", step, head.payload_bytes,
                              parameters_.range().size * sizeof(float)));
    const auto extra = decode_step_extra(head.extra);
    if (!extra) return tl::unexpected(extra.error());
    const auto shape = shape_of(sampler_, step, extra->revision, parked_on(head.timeline), extra->coupled);
    logged_root root{*payload};
    result<void> read;
    const auto made = parameters_.apply(
        timeline_, step, shape, [&](std::uint64_t begin, std::uint64_t end) { return root.part(begin, end); },
        [&] {
          read = root.check();
          return read.has_value();
        });
    if (!read) return read;
    if (!made) return tl::unexpected(made.error());
    if (*made) metrics_.add(sampler_.epoch_of(step), **made);
    ledger_ = extra->ledger;
    return {};
  }

  /// R11e: a step is made again as it was made, whatever was parked later.
  std::vector<protocol::parked_slot> parked_on(timeline_id timeline) const {
    protocol::history then;
    for (const auto& entry : history_)
      if (entry.timeline <= timeline) then.push_back(entry);
    return protocol::parked_slots(then);
  }

  persistence::shard_store& store_;
  shard_parameters& parameters_;
  const data::sampler& sampler_;
  const protocol::history& history_;
  timeline_id timeline_;
  epoch_metrics metrics_;
  protocol::applied_ledger ledger_;
};

/// A version to start from, and whether it is a snapshot (else the initial parameters).
struct base_version {
  version_id version;
  bool is_snapshot = false;
};

/// Those from which the store's log leads to `version`, the best first: the newest below it, so that the
/// version before is made too, and the version itself last.
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

} // namespace

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

version_id newest_restorable(const persistence::shard_store& store) {
  const auto ranges = store.restorable();
  return ranges.empty() ? version_id{0} : ranges.back().last;
}

result<restored_numbers> restore(persistence::shard_store& store, shard_parameters& parameters,
                                 const data::sampler& sampler, const protocol::history& history,
                                 version_id version, damaged_snapshot damaged, spdlog::logger& log) {
  error why{
      error_code::storage_damaged,
      fmt::format("nothing on disk leads to version {}; 'dlrun resume' may find an older one", version)};
  for (const auto& base : bases_for(store, version)) {
    auto made = attempt{store, parameters, sampler, history}.from(base.version, base.is_snapshot, version);
    if (made) return made;
    why = made.error();
    log.warn("restore-failed: version {} from {}: {}", version, base.version, why.message);
    if (damaged == damaged_snapshot::leave || !base.is_snapshot || why.code != error_code::storage_damaged)
      continue;
    if (auto dropped = store.discard_snapshot(base.version); !dropped) return tl::unexpected(dropped.error());
  }
  parameters.withdraw();
  return tl::unexpected(why);
}

result<restored_numbers> restore_without_log(persistence::shard_store& store, shard_parameters& parameters,
                                             const data::sampler& sampler, const protocol::history& history,
                                             version_id version) {
  return attempt{store, parameters, sampler, history}.from(version, version.value != 0, version);
}

result<transport::frozen_parameters_writer> freeze_snapshot(const persistence::shard_store& store,
                                                            const shard_parameters& shape,
                                                            timeline_id timeline, version_id version) {
  auto reader = store.open_snapshot(version);
  if (!reader) return tl::unexpected(reader.error());
  if (const auto extra = decode(reader->metadata(), shape); !extra) return tl::unexpected(extra.error());
  auto frozen = transport::frozen_parameters_writer::create(shape.range().size);
  if (!frozen) return frozen;
  if (auto read = shape.extract(floats_of(*reader), frozen->values()); !read)
    return tl::unexpected(read.error());
  if (auto whole = check_read_to_end(*reader); !whole) return tl::unexpected(whole.error());
  frozen->seal_as(timeline, version);
  return frozen;
}

result<void> write_snapshot(persistence::shard_store& store, version_id version, timeline_id timeline,
                            state_image& image, const snapshot_extra& extra,
                            const std::function<bool()>& may_commit) {
  auto writer = store.begin_snapshot(version, timeline);
  if (!writer) return tl::unexpected(writer.error());
  for (auto part = image.next(); !part.empty(); part = image.next())
    if (auto written = writer->write(std::as_bytes(part)); !written) return written;
  if (!may_commit())
    return fail(error_code::interrupted, fmt::format("the snapshot of version {} was overtaken", version));
  const auto metadata = encode(extra);
  const auto done = writer->commit(std::as_bytes(std::span{metadata}));
  if (!done) return tl::unexpected(done.error());
  return {};
}

} // namespace dlrun::ps_shard
