/// snapshot_file_writer: writes a snapshot file from begin to end.
#pragma once

#include "persistence/file_system.hpp"
#include "persistence/log_record.hpp"

#include <cstddef>
#include <cstdint>
#include <dlrun/error.hpp>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace rocksdb {
class FSWritableFile;
} // namespace rocksdb

namespace dlrun::persistence {

/// Writes the file of a snapshot: a temporary file, to which finish() gives its name. Without
/// finish() no file stays. One thread at a time.
class snapshot_file_writer {
public:
  static result<std::unique_ptr<snapshot_file_writer>> create(const std::shared_ptr<file_system>& files,
                                                              const std::string& directory,
                                                              version_id version, timeline_id timeline);
  ~snapshot_file_writer();
  snapshot_file_writer(const snapshot_file_writer&) = delete;
  snapshot_file_writer& operator=(const snapshot_file_writer&) = delete;

  /// After an error nothing more can be written.
  result<void> write(std::span<const std::byte> bytes);

  /// Writes the last chunk, metadata and trailer; fsync, rename, fsync of the directory.
  result<snapshot_info> finish(std::span<const std::byte> metadata);

  /// Written so far.
  std::uint64_t file_bytes() const { return file_bytes_; }
  const std::string& path() const { return path_; }

private:
  snapshot_file_writer(std::shared_ptr<file_system> files, std::unique_ptr<rocksdb::FSWritableFile> file,
                       std::string directory, version_id version, timeline_id timeline);
  result<void> append(std::span<const std::byte> bytes);
  result<void> append_chunk(std::span<const std::byte> chunk);
  result<void> append_end(std::span<const std::byte> metadata);

  std::shared_ptr<file_system> files_;
  std::unique_ptr<rocksdb::FSWritableFile> file_;
  std::string directory_;
  std::string path_; // with its final name
  version_id version_;
  timeline_id timeline_;
  std::vector<std::byte> chunk_; // what does not fill a chunk yet
  std::uint64_t payload_bytes_ = 0;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t started_bytes_ = 0; // handed to the disk to be written back
  std::uint32_t total_crc32c_ = 0;
};

} // namespace dlrun::persistence
