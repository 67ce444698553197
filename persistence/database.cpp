#include "persistence/database.hpp"

#include "persistence/manifest_mark.hpp"
#include "persistence/record_log_scan.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dlrun/check.hpp>
#include <fcntl.h>
#include <mutex>
#include <rocksdb/convenience.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <unistd.h>

namespace dlrun::persistence {

namespace {

constexpr const char* log_table = "log";
/// For the small files that RocksDB makes when it opens.
constexpr std::uint64_t room_to_open_bytes = std::uint64_t{1} << 20;

/// RocksDB's own chatter has no reader: what matters comes back as a status.
class silent_logger : public rocksdb::Logger {
public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

/// After an error RocksDB would go on by itself when it sees enough free space, in a thread that
/// sleeps for seconds and that others wait for. Not told how much is free it leaves that to us:
/// recover().
class untold_free_space : public rocksdb::FileSystemWrapper {
public:
  using FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "dlrun"; }
  rocksdb::IOStatus GetFreeSpace(const std::string&, const rocksdb::IOOptions&, std::uint64_t*,
                                 rocksdb::IODebugContext*) override {
    return rocksdb::IOStatus::NotSupported("GetFreeSpace");
  }
};

rocksdb::Options make_settings(const database_options& options, rocksdb::Env* env) {
  rocksdb::Options settings;
  settings.env = env;
  settings.create_if_missing = options.create;
  settings.create_missing_column_families = !options.read_only;
  settings.info_log = std::make_shared<silent_logger>();
  // A flush is how the log's space comes back; keys of the log only grow, so levels are filled by
  // moving files.
  settings.write_buffer_size = options.buffer_bytes;
  settings.max_total_wal_size = 4 * options.buffer_bytes;
  settings.level0_file_num_compaction_trigger = 4;
  settings.compression = rocksdb::kNoCompression; // gradients do not compress
  settings.max_background_jobs = 2;
  settings.max_file_opening_threads = 1;             // threads cost more than the few files
  settings.track_and_verify_wals_in_manifest = true; // a log that is gone is damage, not an empty one
  settings.avoid_unnecessary_blocking_io = true;
  settings.max_bgerror_resume_count = 0;
  settings.skip_stats_update_on_db_open = true;
  settings.stats_dump_period_sec = 0;
  settings.stats_persist_period_sec = 0;
  return settings;
}

tl::unexpected<error> fail_held(const std::string& directory, const rocksdb::Status& status) {
  return fail(
      error_code::in_use,
      fmt::format(
          "{} is held by another process that lives: stop that one, or try again when it is gone ({})",
          directory, status.ToString()));
}

} // namespace

database::database(database_options options)
    : options_(std::move(options))
    , env_(rocksdb::NewCompositeEnv(std::make_shared<untold_free_space>(options_.files))) {}

database::~database() { close(); }

result<std::unique_ptr<database>> database::open(database_options options) {
  std::unique_ptr<database> made(new database(std::move(options)));
  if (auto opened = made->open_now(); !opened) return tl::unexpected(opened.error());
  return made;
}

namespace {

/// Does another process hold a file that may not be opened for writing? Asking takes no lock.
/// (Closing the descriptor gives up what this process itself has locked of the file; nobody locks
/// what he cannot write.)
result<void> check_unlocked(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return fail(error_code::system, fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  struct ::flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const bool is_known = ::fcntl(file, F_GETLK, &lock) == 0; // a file system without locks has no holder
  ::close(file);
  if (!is_known || lock.l_type == F_UNLCK) return {};
  return fail(
      error_code::in_use,
      fmt::format("{} is held by process {}: stop that one, or try again when it is gone", path, lock.l_pid));
}

} // namespace

result<void> database::check_unheld(file_system& files, const std::string& directory) {
  const auto path = directory + "/LOCK";
  const auto there = file_exists(files, path);
  if (!there) return tl::unexpected(there.error());
  if (!*there) return {};
  rocksdb::FileLock* lock = nullptr;
  if (const auto status = files.LockFile(path, {}, &lock, nullptr); !status.ok()) {
    const bool by_us = status.ToString().find("lock hold by") != std::string::npos;
    if (by_us || ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0)
      return fail_held(directory, status);
    return check_unlocked(path); // of somebody else's, or on a read-only disk
  }
  files.UnlockFile(lock, {}, nullptr).PermitUncheckedError();
  return {};
}

tl::unexpected<error> database::failure(const rocksdb::Status& status, std::string_view what,
                                        std::uint64_t bytes) const {
  const auto text = status.ToString();
  if (text.find("lock file") != std::string::npos || text.find("lock hold by") != std::string::npos)
    return fail_held(options_.directory, status);
  auto failed = fail_status(status, what, options_.directory, bytes);
  // RocksDB calls files that are missing or do not make sense corrupt, or invalid, or not found.
  if (status.IsCorruption() || status.IsInvalidArgument() || status.IsNotFound() || status.IsPathNotFound())
    return fail(error_code::storage_damaged, fmt::format("{}; {}", failed.value().message, options_.way_out));
  return failed;
}

result<void> database::examine_logs(rocksdb::Options& settings) {
  settings.wal_recovery_mode = rocksdb::WALRecoveryMode::kAbsoluteConsistency;
  const auto there = file_exists(*options_.files, options_.directory);
  if (!there) return tl::unexpected(there.error());
  if (!*there) return {};
  auto logs = list_files(*options_.files, options_.directory); // by name: numbers of equal width
  if (!logs) return tl::unexpected(logs.error());
  std::erase_if(*logs,
                [](const file_entry& entry) { return !entry.name.ends_with(".log") || entry.bytes == 0; });
  for (auto& log : *logs) log.name.insert(0, options_.directory + "/");
  for (auto log = logs->begin(); log != logs->end(); ++log) {
    const auto scan = scan_record_log(*options_.files, log->name);
    if (!scan) return tl::unexpected(scan.error());
    if (scan->tail == log_tail::intact) continue;
    const bool is_last = std::next(log) == logs->end();
    if (options_.strict && (scan->tail == log_tail::damaged || !is_last))
      return fail(error_code::storage_damaged,
                  fmt::format("{} is damaged: {}; {}", log->name, scan->why, options_.way_out));
    if (auto ready = prepare_loss(scan->tail == log_tail::torn && is_last); !ready) return ready;
    dropped_.push_back(fmt::format("{}: {} of {} bytes dropped from byte {} on: {}", log->name,
                                   scan->file_bytes - scan->valid_bytes, scan->file_bytes, scan->valid_bytes,
                                   scan->why));
    if (options_.read_only || !is_last) {
      settings.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
      continue;
    }
    // Cut here, so that the file is whole should it come back: its removal, later, may be lost with
    // the power.
    if (auto cut = cut_file(*options_.files, log->name, scan->valid_bytes); !cut) return cut;
  }
  return {};
}

result<void> database::prepare_loss(bool is_torn_end) const {
  if (!options_.read_only)
    if (auto unheld = check_unheld(*options_.files, options_.directory); !unheld) return unheld;
  return is_torn_end ? result<void>() : options_.before_loss();
}

/// Who opens it at this moment writes another one: looked at again when nobody does.
result<void> database::check_list_of_files() const {
  auto whole = check_manifest(*options_.files, options_.directory);
  if (whole || whole.error().code != error_code::storage_damaged) return whole;
  if (auto unheld = check_unheld(*options_.files, options_.directory); !unheld) return unheld;
  whole = check_manifest(*options_.files, options_.directory);
  if (whole || whole.error().code != error_code::storage_damaged) return whole;
  return fail(error_code::storage_damaged, fmt::format("{}; {}", whole.error().message, options_.way_out));
}

result<void> database::open_now() {
  auto settings = make_settings(options_, env_.get());
  if (!options_.create)
    if (auto whole = check_list_of_files(); !whole) return whole;
  if (auto examined = examine_logs(settings); !examined) return examined;
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  families.emplace_back(rocksdb::kDefaultColumnFamilyName, rocksdb::ColumnFamilyOptions(settings));
  families.emplace_back(log_table, rocksdb::ColumnFamilyOptions(settings));
  rocksdb::DB* opened = nullptr;
  const auto status =
      options_.read_only
          ? rocksdb::DB::OpenForReadOnly(settings, options_.directory, families, &tables_, &opened)
          : rocksdb::DB::Open(settings, options_.directory, families, &tables_, &opened);
  if (!status.ok()) return failure(status, "open");
  db_.reset(opened);
  if (!options_.read_only)
    if (auto marked = mark(); !marked) return marked;
  broken_ = false;
  return {};
}

result<void> database::mark() {
  std::vector<std::string> names;
  std::uint64_t bytes = 0;
  if (const auto status = db_->GetLiveFiles(names, &bytes, false); !status.ok())
    return failure(status, "look at");
  const auto manifest =
      std::ranges::find_if(names, [](const auto& name) { return name.starts_with("/MANIFEST-"); });
  DLRUN_CHECK(manifest != names.end(), "a RocksDB without a MANIFEST in {}", options_.directory);
  return mark_manifest(*options_.files, options_.directory, manifest->substr(1), bytes);
}

void database::close() {
  if (db_ == nullptr) return;
  for (auto* family : tables_) db_->DestroyColumnFamilyHandle(family).PermitUncheckedError();
  tables_.clear();
  db_->Close().PermitUncheckedError();
  db_.reset();
}

result<void> database::check_can_reopen() const {
  const auto probe = options_.directory + "/dlrun.probe";
  if (auto written = write_file_durably(*options_.files, probe, "x"); !written) return written;
  remove_file(*options_.files, probe);
  std::uint64_t free = 0;
  if (!options_.files->GetFreeSpace(options_.directory, {}, &free, nullptr).ok()) return {};
  const auto entries = list_files(*options_.files, options_.directory);
  if (!entries) return tl::unexpected(entries.error());
  std::uint64_t needed = room_to_open_bytes;
  for (const auto& entry : *entries) // what is in the logs is written to tables
    if (entry.name.ends_with(".log")) needed += entry.bytes;
  if (free > needed) return {};
  return fail_status(rocksdb::Status::NoSpace(fmt::format("{} bytes are free", free)), "open",
                     options_.directory, needed);
}

/// Not by RocksDB's Resume(): after a flush that found no room it waits for that flush for ever
/// (7.8).
result<void> database::recover() {
  if (auto possible = check_can_reopen(); !possible) return possible;
  const std::unique_lock lock(mutex_);
  close();
  return open_now();
}

result<std::optional<std::string>> database::get(table from, const std::string& key) const {
  const std::shared_lock lock(mutex_);
  if (db_ == nullptr) return fail_closed();
  std::string value;
  const auto status = db_->Get({}, handle(from), key, &value);
  if (status.IsNotFound()) return std::nullopt;
  if (!status.ok()) return failure(status, "read");
  return value;
}

result<void> database::erase(rocksdb::WriteBatch& batch, table of, const std::string& first,
                             const std::string& end) const {
  const std::shared_lock lock(mutex_);
  if (db_ == nullptr) return fail_closed();
  const std::unique_ptr<rocksdb::Iterator> found(db_->NewIterator({}, handle(of)));
  for (found->Seek(first); found->Valid() && found->key().compare(end) < 0; found->Next())
    batch.Delete(handle(of), found->key());
  return verify(*found);
}

std::unique_ptr<rocksdb::Iterator> database::iterate(table of) const {
  const std::shared_lock lock(mutex_);
  return std::unique_ptr<rocksdb::Iterator>(db_->NewIterator({}, handle(of)));
}

result<void> database::verify(const rocksdb::Iterator& iterator) const {
  if (!iterator.status().ok()) return failure(iterator.status(), "read");
  return {};
}

tl::unexpected<error> database::fail_closed() const {
  return fail(error_code::system, fmt::format("{} is closed since a write failed", options_.directory));
}

result<void> database::check_usable() const {
  if (lost_)
    return fail(error_code::system, fmt::format("{} takes no writes since a sync of it failed: open it again",
                                                options_.directory));
  if (broken_) return fail_closed();
  return {};
}

result<void> database::write(rocksdb::WriteBatch& batch, bool synced) {
  {
    const std::shared_lock lock(mutex_);
    if (auto usable = check_usable(); !usable) return usable;
    if (const auto status = db_->Write({}, &batch); !status.ok()) {
      broken_ = true;
      return failure(status, "write to", batch.GetDataSize());
    }
  }
  return synced ? sync() : result<void>();
}

result<void> database::sync() {
  const std::shared_lock lock(mutex_);
  if (auto usable = check_usable(); !usable) return usable;
  const auto status = db_->SyncWAL();
  if (status.ok()) return {};
  lost_ = true;
  return failure(status, "sync");
}

void database::drop_log_files_below(const std::string& end) {
  const std::shared_lock lock(mutex_);
  if (broken_) return;
  const rocksdb::Slice limit(end);
  rocksdb::DeleteFilesInRange(db_.get(), handle(table::log), nullptr, &limit, false).PermitUncheckedError();
}

result<std::uint64_t> database::bytes_on_disk() const {
  const auto entries = list_files(*options_.files, options_.directory);
  if (!entries) return tl::unexpected(entries.error());
  std::uint64_t sum = 0;
  for (const auto& entry : *entries) sum += entry.bytes;
  return sum;
}

} // namespace dlrun::persistence
