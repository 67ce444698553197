/// database: RocksDB with dlrun's settings, checks on opening, and errors.
#pragma once

#include "persistence/file_system.hpp"

#include <atomic>
#include <cstdint>
#include <dlrun/error.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>
#include <shared_mutex>
#include <string>
#include <vector>

namespace dlrun::persistence {

struct database_options {
  std::string directory;
  std::shared_ptr<file_system> files;
  /// Create the database if there is none. False: a missing one is storage_damaged.
  bool create = false;
  /// Refuse a damaged log (a torn one is still accepted). False: recover what is before the damage,
  /// and say so in dropped().
  bool strict = false;
  /// Open for a look: nothing is written, not even by the recovery.
  bool read_only = false;
  /// Writes are gathered in memory up to this size, then written to a table, and the log is
  /// dropped. The log is preallocated to the same size on opening.
  std::size_t buffer_bytes = std::size_t{4} << 20;
  /// The end of messages about damage: what the user can do.
  std::string way_out;
  /// Called before more of a log is dropped than a torn end (which was never acknowledged). An
  /// error ends the opening before anything is changed.
  std::function<result<void>()> before_loss = [] { return result<void>{}; };
};

/// The tables (column families) of each database. One write may change both, atomically.
enum class table : std::uint8_t {
  /// Few small values that change.
  facts = 0,
  /// Records in the order of their keys, dropped from both ends.
  log = 1,
};

/// An open RocksDB. Thread-safe. After a failed write RocksDB refuses all others until it is opened
/// again, and the failed write may or may not be there. After a failed sync it takes no writes any
/// more: what the operating system wrote is unknown, and a second sync would succeed all the same.
class database {
public:
  /// @returns in_use, storage_damaged (naming file and offset), disk_full, system.
  static result<std::unique_ptr<database>> open(database_options options);
  database(const database&) = delete;
  database& operator=(const database&) = delete;
  ~database();

  /// @returns in_use while somebody has the database open; system when that cannot be found out.
  /// The answer may be out of date a moment later. Needs no right to write.
  static result<void> check_unheld(file_system& files, const std::string& directory);

  /// One line for each log file of which something was dropped.
  const std::vector<std::string>& dropped() const { return dropped_; }

  /// nullopt when there is no such key.
  result<std::optional<std::string>> get(table from, const std::string& key) const;
  /// The iterator must be destroyed before recover() and before the database.
  std::unique_ptr<rocksdb::Iterator> iterate(table of) const;
  /// Adds to `batch` the removal of every key of [first, end) that is there, one by one: a
  /// compaction that finds only deleted ranges makes a table without a key, and RocksDB (7.8) then
  /// ends the process by an assertion if the disk fails.
  result<void> erase(rocksdb::WriteBatch& batch, table of, const std::string& first,
                     const std::string& end) const;
  /// An iterator's status as an error.
  result<void> verify(const rocksdb::Iterator& iterator) const;

  /// To name a table in a batch. Valid until recover().
  rocksdb::ColumnFamilyHandle* handle(table of) const { return tables_[static_cast<std::size_t>(of)]; }
  /// Handed to the operating system when it returns; on disk when `synced`.
  result<void> write(rocksdb::WriteBatch& batch, bool synced);
  /// Everything written before survives a power cut.
  result<void> sync();

  /// A write failed: recover() is needed before the next.
  bool broken() const { return broken_; }
  /// A sync failed.
  bool lost() const { return lost_; }
  /// Opens the database again, so that it takes writes. The failed write may be there or not. The
  /// handles of tables change. After an error nothing can be read either, unless the error is
  /// disk_full.
  result<void> recover();

  /// Gives back the space of whole files with keys of the log below `end`. Keys that share a file
  /// with others stay.
  void drop_log_files_below(const std::string& end);
  result<std::uint64_t> bytes_on_disk() const;
  const std::string& directory() const { return options_.directory; }

private:
  explicit database(database_options options);
  result<void> open_now();
  /// That of RocksDB, before RocksDB reads it.
  result<void> check_list_of_files() const;
  /// Looks at the logs before RocksDB does and chooses how it recovers.
  result<void> examine_logs(rocksdb::Options& settings);
  /// Before a log is changed that another process may be writing.
  result<void> prepare_loss(bool is_torn_end) const;
  /// Notes how long the MANIFEST is.
  result<void> mark();
  void close();
  /// A disk that is full or refuses writes is found before it is closed, so that it can still be
  /// read.
  result<void> check_can_reopen() const;
  result<void> check_usable() const;
  tl::unexpected<error> fail_closed() const;
  tl::unexpected<error> failure(const rocksdb::Status& status, std::string_view what,
                                std::uint64_t bytes = 0) const;

  database_options options_;
  std::unique_ptr<rocksdb::Env> env_;
  std::vector<std::string> dropped_;
  std::atomic<bool> broken_ = false;
  std::atomic<bool> lost_ = false;

  mutable std::shared_mutex mutex_; // exclusive while it is opened anew
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> tables_;
};

} // namespace dlrun::persistence
