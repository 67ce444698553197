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

/// What RocksDB's file functions want last.
inline constexpr rocksdb::IODebugContext* no_context = nullptr;

/// The operating system's files.
std::shared_ptr<file_system> default_file_system();

/// `status` as an error that names what was done, the path, and how many bytes it was about (0: not
/// a matter of size). No space is disk_full, damage is storage_damaged, everything else of the
/// operating system is system.
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
/// What is in `directory`, sorted by name. Opens nothing. What vanishes meanwhile is left out.
result<std::vector<file_entry>> list_files(file_system& files, const std::string& directory);

result<std::string> read_file(file_system& files, const std::string& path);

/// Replaces or creates `path` as a whole, durably: a temporary file, fsync, rename, fsync of the
/// directory. After a crash there is the old content or the new one.
result<void> write_file_durably(file_system& files, const std::string& path, std::string_view content);

result<bool> file_exists(file_system& files, const std::string& path);

/// Drops what is behind the first `bytes` of a file, durably.
result<void> cut_file(file_system& files, const std::string& path, std::uint64_t bytes);

/// Best effort: what stays is removed when the store is opened next.
void remove_file(file_system& files, const std::string& path);

} // namespace dlrun::persistence
