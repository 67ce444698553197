#include "persistence/file_system.hpp"

#include "base/full_disk.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <rocksdb/file_system.h>

namespace dlrun::persistence {

namespace {

std::string parent_of(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

/// Quota of the user or of a project directory; RocksDB knows only ENOSPC.
bool is_no_space(const rocksdb::Status& status, const std::string& text) {
  return status.IsNoSpace() || text.find("Disk quota exceeded") != std::string::npos;
}

} // namespace

std::shared_ptr<file_system> default_file_system() { return rocksdb::FileSystem::Default(); }

tl::unexpected<error> fail_status(const rocksdb::Status& status, std::string_view what,
                                  const std::string& path, std::uint64_t bytes) {
  const auto reason = status.ToString();
  const auto size = bytes > 0 ? fmt::format(" ({} bytes)", bytes) : std::string();
  if (is_no_space(status, reason))
    return fail(error_code::disk_full,
                fmt::format("cannot {} {}{}: the disk is full{}; free space there and try again. {}", what,
                            path, size, base::tell_no_inodes(path), reason));
  const auto code = status.IsCorruption() ? error_code::storage_damaged : error_code::system;
  return fail(code, fmt::format("cannot {} {}{}: {}", what, path, size, reason));
}

result<void> sync_directory(file_system& files, const std::string& directory) {
  std::unique_ptr<rocksdb::FSDirectory> handle;
  auto status = files.NewDirectory(directory, {}, &handle, no_context);
  if (status.ok()) status = handle->Fsync({}, no_context);
  if (!status.ok()) return fail_status(status, "sync the directory", directory);
  return {};
}

result<bool> file_exists(file_system& files, const std::string& path) {
  const auto status = files.FileExists(path, {}, no_context);
  if (status.ok()) return true;
  if (status.IsNotFound()) return false;
  return fail_status(status, "look for", path);
}

result<void> create_directories(file_system& files, const std::string& directory) {
  const auto there = file_exists(files, directory);
  if (!there) return tl::unexpected(there.error());
  const auto parent = parent_of(directory);
  if (!*there) {
    if (parent != directory)
      if (auto made = create_directories(files, parent); !made) return made;
    if (const auto status = files.CreateDirIfMissing(directory, {}, no_context); !status.ok())
      return fail_status(status, "create the directory", directory);
    return sync_directory(files, parent);
  }
  bool is_directory = false;
  if (const auto status = files.IsDirectory(directory, {}, &is_directory, no_context); !status.ok())
    return fail_status(status, "look at", directory);
  if (!is_directory) return fail(error_code::system, fmt::format("{} is not a directory", directory));
  return {};
}

result<std::vector<file_entry>> list_files(file_system& files, const std::string& directory) {
  std::vector<std::string> names;
  if (const auto status = files.GetChildren(directory, {}, &names, no_context); !status.ok())
    return fail_status(status, "list", directory);
  std::vector<file_entry> found;
  for (auto& name : names) {
    file_entry entry{std::move(name), 0};
    // Not to be opened, not even to see what it is: closing any descriptor of a file gives up the
    // locks that this process has on it (fcntl(2)), and one of these files is RocksDB's LOCK.
    if (files.GetFileSize(directory + "/" + entry.name, {}, &entry.bytes, no_context).ok())
      found.push_back(std::move(entry));
  }
  std::ranges::sort(found, {}, &file_entry::name);
  return found;
}

result<std::string> read_file(file_system& files, const std::string& path) {
  std::string content;
  if (const auto status = rocksdb::ReadFileToString(&files, path, &content); !status.ok())
    return fail_status(status, "read", path);
  return content;
}

result<void> write_file_durably(file_system& files, const std::string& path, std::string_view content) {
  const auto temporary = path + ".tmp";
  std::unique_ptr<rocksdb::FSWritableFile> file;
  auto status = files.NewWritableFile(temporary, {}, &file, no_context);
  if (status.ok()) status = file->Append(content, {}, no_context);
  if (status.ok()) status = file->Fsync({}, no_context);
  if (status.ok()) status = file->Close({}, no_context);
  if (status.ok()) status = files.RenameFile(temporary, path, {}, no_context);
  if (!status.ok()) return fail_status(status, "write", path, content.size());
  return sync_directory(files, parent_of(path));
}

result<void> cut_file(file_system& files, const std::string& path, std::uint64_t bytes) {
  std::unique_ptr<rocksdb::FSWritableFile> file;
  auto status = files.ReopenWritableFile(path, {}, &file, no_context);
  if (status.ok()) status = file->Truncate(bytes, {}, no_context);
  if (status.ok()) status = file->Fsync({}, no_context);
  if (status.ok()) status = file->Close({}, no_context);
  if (!status.ok()) return fail_status(status, "cut off the torn end of", path);
  return {};
}

void remove_file(file_system& files, const std::string& path) {
  files.DeleteFile(path, {}, no_context).PermitUncheckedError();
}

} // namespace dlrun::persistence
