#include "persistence/snapshot_shelf.hpp"

#include "persistence/snapshot_file.hpp"
#include "persistence/store_codec.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::persistence {

namespace {

auto find_snapshot(const store_state& state, version_id version) {
  return std::ranges::find(state.snapshots, version, &snapshot_info::version);
}

} // namespace

void remove_snapshot_files(const store_ground& ground, std::span<const snapshot_info> snapshots) {
  for (const auto& snapshot : snapshots)
    remove_file(*ground.files,
                ground.snapshot_directory + "/" + snapshot_file_name(snapshot.version, snapshot.timeline));
}

result<std::uint64_t> snapshot_shelf::begin(version_id version, timeline_id timeline) {
  if (auto usable = on_.check_usable(); !usable) return tl::unexpected(usable.error());
  const std::lock_guard lock(on_.mutex);
  if (timeline < timeline_of(on_.state))
    return fail(error_code::fenced,
                fmt::format("{} is on timeline {}: a snapshot of timeline {} comes too late",
                            on_.options.directory, timeline_of(on_.state), timeline));
  DLRUN_CHECK(find_snapshot(on_.state, version) == on_.state.snapshots.end(),
              "{} has a snapshot of version {} already", on_.options.directory, version);
  on_.state.in_the_making.push_back(version);
  return on_.state.rewinds;
}

void snapshot_shelf::end(version_id version, std::uint64_t rewinds) {
  const std::lock_guard lock(on_.mutex);
  if (on_.state.rewinds != rewinds) return;
  const auto found = std::ranges::find(on_.state.in_the_making, version);
  if (found != on_.state.in_the_making.end()) on_.state.in_the_making.erase(found);
}

result<void> snapshot_shelf::add(const snapshot_info& snapshot, std::uint64_t rewinds) {
  {
    const std::lock_guard log_lock(on_.log_mutex); // a database that a full disk has closed syncs nothing
    if (auto ready = on_.recover(); !ready) return ready;
  }
  if (auto synced = log_.sync(); !synced) return tl::unexpected(synced.error());
  const std::lock_guard log_lock(on_.log_mutex);
  if (auto ready = on_.recover(); !ready) return ready;
  {
    const std::lock_guard lock(on_.mutex);
    if (on_.state.rewinds != rewinds)
      return fail(error_code::fenced,
                  fmt::format("{} was rewound while its snapshot of version {} was written",
                              on_.options.directory, snapshot.version));
    if (snapshot.version < on_.state.floor)
      return fail(error_code::fenced,
                  fmt::format("{} dropped everything below version {} while its snapshot of version "
                              "{} was written",
                              on_.options.directory, on_.state.floor, snapshot.version));
    for (const auto version : on_.state.in_the_making)
      DLRUN_CHECK(version >= snapshot.version, "the snapshot of version {} ends before that of version {}",
                  snapshot.version, version);
    DLRUN_CHECK(find_snapshot(on_.state, snapshot.version) == on_.state.snapshots.end(),
                "two snapshots of version {}", snapshot.version);
  }
  rocksdb::WriteBatch batch;
  batch.Put(on_.database->handle(table::facts), keys::of_snapshot(snapshot.version), encode(snapshot));
  if (auto written = on_.write(batch, true); !written) return written;
  const std::lock_guard lock(on_.mutex);
  const auto place =
      std::ranges::upper_bound(on_.state.snapshots, snapshot.version, {}, &snapshot_info::version);
  on_.state.snapshots.insert(place, snapshot);
  on_.bytes_snapshotted += snapshot.file_bytes;
  return {};
}

result<snapshot_reader> snapshot_shelf::open(version_id version) const {
  snapshot_info known;
  {
    const std::lock_guard lock(on_.mutex);
    const auto found = find_snapshot(on_.state, version);
    if (found == on_.state.snapshots.end())
      return fail(error_code::bad_usage,
                  fmt::format("{} has no snapshot of version {}", on_.options.directory, version));
    known = *found;
  }
  const auto path = on_.snapshot_directory + "/" + snapshot_file_name(known.version, known.timeline);
  auto reader = snapshot_reader::open(on_.files, path);
  if (reader && reader->info() != known)
    return fail(error_code::storage_damaged, fmt::format("{} is damaged: it is another snapshot", path));
  return reader;
}

result<void> snapshot_shelf::discard(version_id version) {
  const std::lock_guard log_lock(on_.log_mutex);
  if (auto usable = on_.check_usable(); !usable) return usable;
  if (auto ready = on_.recover(); !ready) return ready;
  auto after = on_.with_state([](const store_state& state) { return state; });
  const auto found = find_snapshot(after, version);
  if (found == after.snapshots.end()) return {};
  const auto discarded = *found;
  after.snapshots.erase(found);
  // Steps that only this snapshot made reachable go with it.
  const auto end = next_step_of(after);
  if (auto renewed = on_.renew_identity(); !renewed) return renewed; // R24
  rocksdb::WriteBatch batch;
  batch.Delete(on_.database->handle(table::facts), keys::of_snapshot(version));
  if (auto erased = on_.erase_steps_from(batch, end); !erased) return erased;
  if (auto written = on_.write(batch, true); !written) return written;
  {
    const std::lock_guard lock(on_.mutex);
    std::erase(on_.state.snapshots, discarded);
    on_.state.steps.cut_from(end);
    on_.state.synced_end = std::min(on_.state.synced_end, end);
  }
  on_.segments.cut_from(end);
  remove_snapshot_files(on_, std::span(&discarded, 1));
  return {};
}

} // namespace dlrun::persistence
