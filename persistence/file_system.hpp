/// The seam below everything durable: RocksDB's FileSystem, which our own files go through as well,
/// so that one wrapper can inject faults into all of it.
#pragma once

#include <cstdint>
#include <dlrun/error.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rocksdb {
class FileSystem;
class Status;
struct IODebugContext;
} // namespace rocksdb

namespace dlrun::persistence {

using file_system = rocksdb::FileSystem;

/// Last argument of RocksDB's file functions.
inline constexpr rocksdb::IODebugContext* no_context = nullptr;

/// The operating system's files.
std::shared_ptr<file_system> default_file_system();

/// `status` as an error that names what was done, the path, and the number of bytes (0: not a
/// matter of size). No space is disk_full, damage is storage_damaged, anything else is system.
tl::unexpected<error> fail_status(const rocksdb::Status& status, std::string_view what,
                                  const std::string& path, std::uint64_t bytes = 0);

/// Creates `directory` and what is missing above it, and makes each entry durable.
result<void> create_directories(file_system& files, const std::string& directory);

/// Makes the names in `directory` durable: files created, renamed, removed.
result<void> sync_directory(file_system& files, const std::string& directory);

struct file_entry {
  std::string name;
  std::uint64_t bytes = 0;
};
/// The entries of `directory`, sorted by name. Opens no file; leaves out files that vanish
/// meanwhile.
result<std::vector<file_entry>> list_files(file_system& files, const std::string& directory);

result<std::string> read_file(file_system& files, const std::string& path);

/// Replaces or creates `path` as a whole, durably: a temporary file, fsync, rename, fsync of the
/// directory. After a crash there is the old content or the new one.
result<void> write_file_durably(file_system& files, const std::string& path, std::string_view content);

result<bool> file_exists(file_system& files, const std::string& path);

/// Cuts a file to its first `bytes`, durably.
result<void> cut_file(file_system& files, const std::string& path, std::uint64_t bytes);

/// Removes a file, best effort: the next opening of the store removes one that stays.
void remove_file(file_system& files, const std::string& path);

} // namespace dlrun::persistence
