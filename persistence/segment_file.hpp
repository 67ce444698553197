/// Segment files: the payload of large records. The writer and the reader of one file.
#pragma once

#include "persistence/file_system.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <dlrun/error.hpp>
#include <dlrun/ids.hpp>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace rocksdb {
class FSRandomAccessFile;
class FSWritableFile;
} // namespace rocksdb

namespace dlrun::persistence {

/// The head of a payload: stored before it, and compared when the payload is read.
struct segment_record {
  step_id step;
  timeline_id timeline;
  std::uint64_t bytes = 0;
  std::uint32_t crc32c = 0;

  friend bool operator==(const segment_record&, const segment_record&) = default;
};

/// "000042.seg"
std::string segment_file_name(std::uint64_t number);

/// A segment file that holds no record that counts.
struct spare_segment {
  std::uint64_t number = 0;
  std::uint64_t bytes = 0; ///< its size
};

/// Appends payloads to a file. append() from one thread; sync() also from others at the same time.
class segment_writer {
public:
  /// Takes space from the file system in pieces of `preallocation_bytes`, so that a file has few
  /// extents.
  static result<std::unique_ptr<segment_writer>> create(const std::shared_ptr<file_system>& files,
                                                        const std::string& directory, std::uint64_t number,
                                                        std::uint64_t preallocation_bytes);
  /// Renames `over` and overwrites its content. Its blocks on the disk and its pages in memory are
  /// there already: on a virtual machine whose host takes unused memory back, a new page costs ten
  /// times as much as copying into it. A writer of `over` may still exist, but must not append.
  static result<std::unique_ptr<segment_writer>> reuse(const std::shared_ptr<file_system>& files,
                                                       const std::string& directory, std::uint64_t number,
                                                       std::uint64_t preallocation_bytes,
                                                       const spare_segment& over);
  ~segment_writer();
  segment_writer(const segment_writer&) = delete;
  segment_writer& operator=(const segment_writer&) = delete;

  /// Hands head and payload to the operating system. @returns the payload's offset. After an error
  /// the file ends in something undefined: cut_to() what was there before and use another file.
  result<std::uint64_t> append(const segment_record& head, std::span<const std::byte> payload);
  /// Everything appended before survives a power cut, if the directory is synced too. Once it
  /// failed it fails for ever: a second fdatasync could succeed although pages were lost.
  result<void> sync();
  /// Drops what is behind the first `bytes`, after a failure. Best effort.
  void cut_to(std::uint64_t bytes);
  /// Ends appending: gives back unused preallocated space. Best effort.
  void close();

  std::uint64_t number() const { return number_; }
  std::uint64_t bytes() const { return bytes_; }
  /// Size of the file: behind what was appended there may be old content of a file that was reused.
  std::uint64_t file_bytes() const { return std::max(bytes_.load(), reused_bytes_); }
  bool synced() const { return synced_bytes_ == bytes_; }

private:
  segment_writer(std::unique_ptr<rocksdb::FSWritableFile> file, std::string path, std::uint64_t number,
                 std::uint64_t preallocation_bytes, std::uint64_t reused_bytes);
  static result<std::unique_ptr<segment_writer>> begin(const std::shared_ptr<file_system>& files,
                                                       std::string path,
                                                       std::unique_ptr<rocksdb::FSWritableFile> file,
                                                       const spare_segment& as,
                                                       std::uint64_t preallocation_bytes);
  void preallocate_for(std::uint64_t bytes);
  result<void> write(std::span<const std::byte> bytes);
  result<void> write_back(std::uint64_t goal);

  std::unique_ptr<rocksdb::FSWritableFile> file_;
  std::string path_;
  std::uint64_t number_;
  std::uint64_t preallocation_bytes_;
  std::uint64_t reused_bytes_;    ///< that the file had when it was written over
  std::uint64_t allocated_bytes_; ///< of the file, by whoever appends
  std::atomic<std::uint64_t> bytes_ = 0;
  std::atomic<std::uint64_t> synced_bytes_ = 0;
  std::atomic<bool> sync_failed_ = false;
};

/// Reads payloads back. Thread-safe.
class segment_reader {
public:
  /// Verifies the file's head. @returns storage_damaged naming file and offset, also when there is
  /// no such file; system.
  static result<std::unique_ptr<segment_reader>> open(const std::shared_ptr<file_system>& files,
                                                      const std::string& directory, std::uint64_t number);
  ~segment_reader();
  segment_reader(const segment_reader&) = delete;
  segment_reader& operator=(const segment_reader&) = delete;

  /// Reads and checks the payload at `offset`, and keeps nothing of it.
  /// @returns storage_damaged naming file and offset unless head and checksum are those of
  /// `expected`; system.
  result<void> verify(std::uint64_t offset, const segment_record& expected) const;

  /// For payloads that are read in parts. Whether the head of the record at `offset` is that of
  /// `expected`.
  result<void> check_head(std::uint64_t offset, const segment_record& expected) const;
  /// Fills `bytes` with those of the file from `offset` on. @returns their CRC32C, or, where
  /// `before` is that of bytes before them, the one of both.
  result<std::uint32_t> read_part(std::uint64_t offset, std::span<std::byte> bytes,
                                  std::uint32_t before = 0) const;
  /// @returns storage_damaged unless `crc32c`, of all of the payload at `offset`, is that of
  ///   `expected`.
  result<void> check_sum(std::uint64_t offset, const segment_record& expected, std::uint32_t crc32c) const;

private:
  segment_reader(std::unique_ptr<rocksdb::FSRandomAccessFile> file, std::string path);

  std::unique_ptr<rocksdb::FSRandomAccessFile> file_;
  std::string path_;
};

/// Reads `bytes.size()` bytes at `offset`. @returns storage_damaged if the file ends before that,
/// system.
result<void> read_exactly(const rocksdb::FSRandomAccessFile& file, const std::string& path,
                          std::uint64_t offset, std::span<std::byte> bytes);

} // namespace dlrun::persistence
