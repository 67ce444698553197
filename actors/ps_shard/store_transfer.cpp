#include "actors/ps_shard/store_transfer.hpp"

#include "actors/common/clock.hpp"
#include "base/crc32c.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <map>
#include <mutex>
#include <optional>

namespace dlrun::ps_shard {
namespace {

result<common::snapshot_extra> extra_of(const persistence::snapshot_reader& reader,
                                        const shard_parameters& parameters) {
  return common::decode_snapshot_extra(reader.metadata(), parameters.range(), parameters.image_floats(),
                                       parameters.metric_sums());
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

  result<restore_outcome> from(version_id base, bool is_snapshot, version_id version) {
    const auto begin = common::now();
    parameters_.withdraw();
    if (auto loaded = is_snapshot ? load(base) : load_initial(); !loaded)
      return tl::unexpected(loaded.error());
    if (auto replayed = replay_all(step_from(base), step_from(version)); !replayed)
      return tl::unexpected(replayed.error());
    const auto steps = version.value - base.value;
    return restore_outcome{version, steps > 0, metrics_.sums(), ledger_, steps, common::now() - begin};
  }

private:
  result<void> load_initial() { return parameters_.reset(timeline_); }

  result<void> load(version_id base) {
    auto reader = store_.open_snapshot(base);
    if (!reader) return tl::unexpected(reader.error());
    const auto extra = extra_of(*reader, parameters_);
    if (!extra) return tl::unexpected(extra.error());
    metrics_ = epoch_metrics{extra->metrics};
    ledger_ = extra->ledger;
    const auto loaded = parameters_.load(timeline_, base, common::floats_of(*reader));
    return loaded ? common::check_read_to_end(*reader) : loaded;
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
    const auto extra = common::decode_step_extra(head.extra);
    if (!extra) return tl::unexpected(extra.error());
    const auto shape = common::shape_of(sampler_, step, extra->revision,
                                        common::parked_on(history_, head.timeline), extra->coupled);
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

  persistence::shard_store& store_;
  shard_parameters& parameters_;
  const data::sampler& sampler_;
  const protocol::history& history_;
  timeline_id timeline_;
  epoch_metrics metrics_;
  protocol::applied_ledger ledger_;
};

} // namespace

version_id newest_restorable(const persistence::shard_store& store) {
  const auto ranges = store.restorable();
  return ranges.empty() ? version_id{0} : ranges.back().last;
}

result<restore_outcome> restore(persistence::shard_store& store, shard_parameters& parameters,
                                const data::sampler& sampler, const protocol::history& history,
                                version_id version, damaged_snapshot damaged, spdlog::logger& log) {
  error why{
      error_code::storage_damaged,
      fmt::format("nothing on disk leads to version {}; 'dlrun resume' may find an older one", version)};
  for (const auto& base : common::bases_for(store, version)) {
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

result<transport::frozen_parameters_writer> freeze_snapshot(const persistence::shard_store& store,
                                                            const shard_parameters& shape,
                                                            timeline_id timeline, version_id version) {
  auto reader = store.open_snapshot(version);
  if (!reader) return tl::unexpected(reader.error());
  if (const auto extra = extra_of(*reader, shape); !extra) return tl::unexpected(extra.error());
  auto frozen = transport::frozen_parameters_writer::create(shape.range().size);
  if (!frozen) return frozen;
  if (auto read = shape.extract(common::floats_of(*reader), frozen->values()); !read)
    return tl::unexpected(read.error());
  if (auto whole = common::check_read_to_end(*reader); !whole) return tl::unexpected(whole.error());
  frozen->seal_as(timeline, version);
  return frozen;
}

result<void> write_snapshot(persistence::shard_store& store, version_id version, timeline_id timeline,
                            copy_on_write_image& image, const common::snapshot_extra& extra,
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
