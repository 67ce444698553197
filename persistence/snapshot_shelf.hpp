/// The snapshots of a shard_store: which there are, and which are being written.
#pragma once

#include "persistence/log_of_record.hpp"
#include "persistence/store_ground.hpp"

#include <span>

namespace dlrun::persistence {

/// Removes the files of snapshots that no longer count. The next opening removes a file that the OS
/// does not let go now.
void remove_snapshot_files(const store_ground& ground, std::span<const snapshot_info> snapshots);

/// Knows the snapshots of a store, and those in the making: a snapshot begins, its snapshot_writer
/// writes it, and it counts once it is added.
class snapshot_shelf {
public:
  snapshot_shelf(store_ground& on, log_of_record& log)
      : on_(on)
      , log_(log) {}

  /// @returns the number of rewinds so far, which end() and add() want.
  result<std::uint64_t> begin(version_id version, timeline_id timeline);
  /// The snapshot is written, or given up.
  void end(version_id version, std::uint64_t rewinds);
  /// As snapshot_writer::commit(): syncs the log, then its entry.
  result<void> add(const snapshot_info& snapshot, std::uint64_t rewinds);
  result<snapshot_reader> open(version_id version) const;
  result<void> discard(version_id version);

private:
  store_ground& on_;
  log_of_record& log_;
};

} // namespace dlrun::persistence
