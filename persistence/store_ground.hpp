/// What all parts of a shard_store share: its database, its segments, and what counts of them.
#pragma once

#include "persistence/database.hpp"
#include "persistence/segment_set.hpp"
#include "persistence/shard_store.hpp"
#include "persistence/store_identity.hpp"
#include "persistence/version_ranges.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace dlrun::persistence {

/// What counts of a store: a copy in memory of what RocksDB holds.
struct store_state {
  step_set steps;
  std::vector<snapshot_info> snapshots; // in the order of versions
  std::vector<history_entry> history;
  version_id floor;
  /// As the file FORMAT has it; during a look of number 0 when the store must get another one.
  store_identity identity;
  /// The records below it are synced.
  step_id synced_end;
  /// Counts rewinds: what began before one is void after it.
  std::uint64_t rewinds = 0;
  /// Versions of the snapshots being written since the last rewind.
  std::vector<version_id> in_the_making;
};

/// The newest timeline; 0 before the first rewind.
timeline_id timeline_of(const store_state& state);
/// The newest version that `state` can restore, as the step that is appended next.
step_id next_step_of(const store_state& state);
std::vector<base::version_range> restorable_of(const store_state& state);

/// The data that the parts of a store share, and the checks that each makes before it writes. The
/// parts change it under its locks; only store_opening does so without them.
struct store_ground {
  explicit store_ground(const shard_store_options& with);

  template <class Function>
  auto with_state(Function&& function) const {
    const std::lock_guard lock(mutex);
    return function(state);
  }

  /// @returns system once a sync has failed.
  result<void> check_usable() const;
  /// Is there room for `bytes` more? @returns limit_exceeded, naming path and size.
  result<void> check_quota(std::uint64_t bytes);
  /// After a failed write, perhaps because the disk is full: gives back space that is not needed.
  void make_room() { segments.remove_spares(); }
  store_counters counters() const;
  void count_database_bytes(std::uint64_t added);
  /// Adds to `batch` that no step from `first` on is in the log.
  result<void> erase_steps_from(rocksdb::WriteBatch& batch, step_id first) const;
  /// Text "" when there is none.
  result<std::string> get_fact(const std::string& key) const;

  // log_mutex is held.
  /// R24: to be called before anything goes that the store may have acknowledged. In a look the
  /// identity is only forgotten.
  result<void> renew_identity();
  /// The same number, and whether it holds beyond this boot of the machine.
  result<void> keep_identity(bool beyond_boot);
  result<void> write(rocksdb::WriteBatch& batch, bool synced);
  /// After a write failed: RocksDB anew, without what that write may have left.
  result<void> recover();

  const shard_store_options options;
  const std::shared_ptr<file_system> files;
  const std::string boot; ///< of the machine's kernel, now
  const std::string log_directory;
  const std::string snapshot_directory;
  std::unique_ptr<persistence::database> database;
  segment_set segments;

  /// Held by whoever changes the log or the facts; taken before mutex.
  std::mutex log_mutex;
  /// A sync or a rewind failed: what is durable is unknown.
  std::atomic<bool> lost = false;

  mutable std::mutex mutex; ///< of state; never held during input and output
  store_state state;

  std::atomic<std::uint64_t> bytes_logged = 0;
  std::atomic<std::uint64_t> bytes_snapshotted = 0;
  std::atomic<std::uint64_t> unfinished_bytes = 0; ///< of snapshots that have no name yet
  std::atomic<std::uint64_t> database_bytes = 0;
  std::atomic<std::uint64_t> database_bytes_measured = 0;

private:
  std::uint64_t run() const;
  result<void> drop_leftovers();
  result<void> change_identity(store_identity to);

  /// A write failed, and recover() has not come to its end since: nothing is written until it has.
  bool has_leftovers_ = false;
};

} // namespace dlrun::persistence
