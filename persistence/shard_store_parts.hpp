/// The inside of shard_store, shared by the sources that make it up.
#pragma once

#include "base/version_set.hpp"
#include "persistence/database.hpp"
#include "persistence/segment_set.hpp"
#include "persistence/shard_store.hpp"
#include "persistence/snapshot_file_writer.hpp"
#include "persistence/store_codec.hpp"
#include "persistence/version_ranges.hpp"

#include <atomic>
#include <mutex>
#include <optional>

namespace dlrun::persistence {

/// What counts of a store, in memory: a copy of what RocksDB holds.
struct store_state {
  step_set steps;
  std::vector<snapshot_info> snapshots; // in the order of versions
  std::vector<history_entry> history;
  version_id floor;
  /// The records below it are synced.
  step_id synced_end;
  /// Counts rewinds: what began before one is void after it.
  std::uint64_t rewinds = 0;
  /// Versions of the snapshots being written since the last rewind.
  std::vector<version_id> in_the_making;
};

class shard_store::implementation {
public:
  explicit implementation(const shard_store_options& options);

  result<void> open();

  result<void> append(std::span<const log_record> records);
  result<step_id> sync();
  result<payload_reader> open_payload(step_id step) const;
  result<record_head> read_head(step_id step) const;

  result<std::uint64_t> begin_snapshot(version_id version, timeline_id timeline);
  void end_snapshot(version_id version, std::uint64_t rewinds);
  result<void> register_snapshot(const snapshot_info& snapshot, std::uint64_t rewinds);
  result<snapshot_reader> open_snapshot(version_id version) const;
  result<void> discard_snapshot(version_id version);

  result<void> rewind(std::span<const history_entry> history, version_id to);
  result<void> drop_below(version_id floor, std::optional<version_id> kept);

  /// Is there room for `bytes` more? @returns limit_exceeded, naming path and size.
  result<void> check_quota(std::uint64_t bytes);
  /// For after a write that failed, perhaps since the disk is full: gives back what can be done without.
  void make_room() { segments_.remove_spares(); }
  store_counters counters() const;

  template <class Function>
  auto with_state(Function&& function) const {
    const std::lock_guard lock(mutex_);
    return function(state_);
  }

  const store_contents& found() const { return found_; }
  const std::shared_ptr<file_system>& files() const { return files_; }
  const std::string& snapshot_directory() const { return snapshot_directory_; }
  /// Bytes of snapshots that have no name yet.
  std::atomic<std::uint64_t> unfinished_bytes = 0;

private:
  /// A record of the log on opening.
  struct found_record {
    step_id step;
    std::optional<segment_place> place; ///< of the payload, where that is in a segment
    segment_record payload;             ///< what is to be there
    std::string damage;                 ///< why it does not count; empty when it does
    std::optional<error> failure;       ///< it cannot be said whether it counts
  };

  // Opening, in this order (shard_store_open.cpp).
  result<void> create_folders();
  result<void> check_there() const;
  result<void> open_database();
  result<void> claim(bool is_new);
  result<void> load_facts();
  result<void> load_snapshots();
  result<void> load_log();
  found_record examine(step_id step, std::string_view value) const;
  void verify_payloads(std::vector<found_record>& records) const;
  result<void> drop_unreachable(const std::vector<found_record>& records);
  result<void> settle();
  result<std::string> get_fact(const std::string& key) const;
  result<void> delete_fact(const std::string& key);
  void note_damage(std::string line);

  // The rest; log_mutex_ is held.
  result<void> check_usable() const;
  /// After a write failed: RocksDB anew, without what that write may have left.
  result<void> recover();
  result<void> drop_leftovers();
  result<logged_record> logged(step_id step) const;
  result<std::vector<std::string>> write_segments(std::span<const log_record> records);
  result<void> write(rocksdb::WriteBatch& batch, bool synced);
  void check_order(std::span<const log_record> records) const;
  void remove_snapshot_files(std::span<const snapshot_info> snapshots);
  void count_database_bytes(std::uint64_t added);

  shard_store_options options_;
  std::shared_ptr<file_system> files_;
  std::string log_directory_;
  std::string snapshot_directory_;
  store_contents found_;
  std::uint64_t damage_left_out_ = 0;

  std::unique_ptr<database> database_;
  segment_set segments_;

  /// Held by whoever changes the log or the facts; taken before mutex_.
  std::mutex log_mutex_;
  /// A sync or a rewind failed: what is durable is unknown.
  std::atomic<bool> lost_ = false;

  mutable std::mutex mutex_; // state_; never held during input and output
  store_state state_;

  std::atomic<std::uint64_t> bytes_logged_ = 0;
  std::atomic<std::uint64_t> bytes_snapshotted_ = 0;
  std::atomic<std::uint64_t> database_bytes_ = 0;
  std::atomic<std::uint64_t> database_bytes_measured_ = 0;
};

/// The newest timeline; 0 before the first rewind.
timeline_id timeline_of(const store_state& state);
/// The newest version that `state` can restore, as the step that is appended next.
step_id next_step_of(const store_state& state);
std::vector<base::version_range> restorable_of(const store_state& state);

} // namespace dlrun::persistence
