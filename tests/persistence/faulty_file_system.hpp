/// A file system that fails on demand: loses power, fills up, turns read-only, returns errors, is
/// slow. Beneath it are real files, so that RocksDB and our own files run on it unchanged.
#pragma once

#include "tests/persistence/unsynced_changes.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <rocksdb/file_system.h>
#include <string>
#include <vector>

namespace dlrun::test {

/// Thread-safe. What it does on its own (what survives a power cut) follows from a seed.
///
/// A power cut loses what was not synced: of each file some part behind the last sync, perhaps with
/// whole pages of zeroes in what remains, or of what was there before it was written over; of each
/// directory the latest of the files created, renamed, removed since its last sync. It is stricter
/// than most file systems: to sync a file does not make its name durable.
class faulty_file_system : public rocksdb::FileSystemWrapper {
public:
  explicit faulty_file_system(std::uint64_t seed = 1);
  const char* Name() const override { return "faulty"; }

  /// Power goes with the `changes`-th change from now (write, sync, creation, renaming, removal):
  /// that one is done by half or not at all, and everything after it fails.
  void cut_power_after(std::uint64_t changes);
  bool power_is_cut() const;
  /// Changes the files to what is left, and goes on. Everything opened before must be closed.
  void restore_power();
  /// Since the beginning.
  std::uint64_t changes() const;

  /// Room for so many bytes more; nullopt: no limit.
  void set_free_bytes(std::optional<std::uint64_t> bytes);
  void set_read_only(bool read_only);

  enum class operation : std::uint8_t { read, write, sync, rename };
  /// The operation fails with EIO on files whose path contains `part`; an empty part ends that.
  void fail(operation what, const std::string& part);
  /// Every sync takes this much longer.
  void set_sync_delay(std::chrono::microseconds delay);

  // rocksdb::FileSystem
  rocksdb::IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                      rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus NewRandomAccessFile(const std::string& path, const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* file,
                                       rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus ReuseWritableFile(const std::string& path, const std::string& before,
                                      const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSWritableFile>* file,
                                      rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus NewRandomRWFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSRandomRWFile>* file,
                                    rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus NewDirectory(const std::string& path, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* directory,
                                 rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus GetChildren(const std::string& path, const rocksdb::IOOptions& options,
                                std::vector<std::string>* names, rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus CreateDirIfMissing(const std::string& path, const rocksdb::IOOptions& options,
                                       rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options, rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus GetFreeSpace(const std::string& path, const rocksdb::IOOptions& options,
                                 std::uint64_t* free, rocksdb::IODebugContext* context) override;

private:
  friend class faulty_writable_file;
  friend class faulty_random_access_file;
  friend class faulty_random_rw_file;
  friend class faulty_sequential_file;
  friend class faulty_directory;

  // mutex_ is held.
  rocksdb::IOStatus count_change(operation what, const std::string& path);
  rocksdb::IOStatus rename(const std::string& from, const std::string& to);
  /// Gives back the room of what has the name, which another file gets. @returns its grave, or "".
  std::string bury(const std::string& path);

  // Called by the files.
  rocksdb::IOStatus append(const std::string& path, const rocksdb::Slice& data,
                           rocksdb::FSWritableFile& below, const rocksdb::IOOptions& options);
  rocksdb::IOStatus sync(const std::string& path);
  rocksdb::IOStatus truncate(const std::string& path, std::uint64_t bytes, rocksdb::FSWritableFile& below);
  rocksdb::IOStatus sync_directory(const std::string& path);
  rocksdb::IOStatus check_read(const std::string& path) const;

  mutable std::mutex mutex_;
  std::uint64_t changes_ = 0;
  std::optional<std::uint64_t> cut_at_;
  bool cut_ = false;
  bool read_only_ = false;
  std::optional<std::uint64_t> free_bytes_;
  std::map<operation, std::string> failing_;
  std::chrono::microseconds sync_delay_{0};
  unsynced_changes unsynced_;
};

} // namespace dlrun::test
