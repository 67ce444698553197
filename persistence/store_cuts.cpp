#include "persistence/store_cuts.hpp"

#include "persistence/snapshot_shelf.hpp"
#include "persistence/store_codec.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::persistence {

result<void> rewind_store(store_ground& on, std::span<const history_entry> history, version_id to) {
  const std::lock_guard log_lock(on.log_mutex);
  if (auto usable = on.check_usable(); !usable) return usable;
  if (auto ready = on.recover(); !ready) return ready;
  DLRUN_CHECK(!history.empty(), "a rewind to version {} without a history", to);
  const std::vector<history_entry> entries(history.begin(), history.end());
  const auto before = on.with_state([](const store_state& state) { return state; });
  if (entries == before.history) return {};
  if (!before.history.empty() && entries.back().timeline <= before.history.back().timeline)
    return fail(error_code::fenced,
                fmt::format("{} is on timeline {} already, a rewind to timeline {} comes too late",
                            on.options.directory, before.history.back().timeline, entries.back().timeline));
  if (!contains(restorable_of(before), to))
    return fail(error_code::bad_usage, fmt::format("{} cannot restore version {}", on.options.directory, to));
  std::vector<snapshot_info> above;
  std::ranges::copy_if(before.snapshots, std::back_inserter(above),
                       [&](const snapshot_info& snapshot) { return snapshot.version > to; });
  rocksdb::WriteBatch batch;
  batch.Put(on.database->handle(table::facts), keys::history, encode(entries));
  if (to < before.floor) batch.Put(on.database->handle(table::facts), keys::floor, encode_floor(to));
  for (const auto& snapshot : above)
    batch.Delete(on.database->handle(table::facts), keys::of_snapshot(snapshot.version));
  if (auto erased = on.erase_steps_from(batch, step_from(to)); !erased) return erased;
  if (auto written = on.write(batch, true); !written) {
    on.lost = true; // it may be there or not
    return written;
  }
  {
    const std::lock_guard lock(on.mutex);
    on.state.history = entries;
    on.state.floor = std::min(on.state.floor, to); // what is made from there on counts
    on.state.steps.cut_from(step_from(to));
    std::erase_if(on.state.snapshots, [&](const snapshot_info& snapshot) { return snapshot.version > to; });
    on.state.synced_end = std::min(on.state.synced_end, step_from(to));
    ++on.state.rewinds;
    on.state.in_the_making.clear();
  }
  on.segments.cut_from(step_from(to));
  remove_snapshot_files(on, above);
  return {};
}

result<void> drop_below_in(store_ground& on, version_id floor, std::optional<version_id> kept) {
  const std::lock_guard log_lock(on.log_mutex);
  if (auto usable = on.check_usable(); !usable) return usable;
  if (auto ready = on.recover(); !ready) return ready;
  const auto before = on.with_state([](const store_state& state) { return state; });
  auto base = before.floor; // the newest that is not above the floor
  for (const auto& snapshot : before.snapshots)
    if (snapshot.version <= floor) base = std::max(base, snapshot.version);
  const auto is_dropped = [&](const snapshot_info& one) { return one.version < base && one.version != kept; };
  std::vector<snapshot_info> below;
  std::ranges::copy_if(before.snapshots, std::back_inserter(below), is_dropped);
  if (base == before.floor && below.empty()) return {};
  rocksdb::WriteBatch batch;
  batch.Put(on.database->handle(table::facts), keys::floor, encode_floor(base));
  for (const auto& snapshot : below)
    batch.Delete(on.database->handle(table::facts), keys::of_snapshot(snapshot.version));
  if (auto written = on.write(batch, true); !written) return written;
  {
    const std::lock_guard lock(on.mutex);
    on.state.floor = base;
    std::erase_if(on.state.snapshots, is_dropped);
    on.state.steps.cut_below(step_from(base));
  }
  on.segments.cut_below(step_from(base));
  remove_snapshot_files(on, below);
  on.database->drop_log_files_below(keys::of_step(step_from(base)));
  return {};
}

} // namespace dlrun::persistence
