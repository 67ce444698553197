/// Looks at a write-ahead log of RocksDB before RocksDB does: where does it end, and how?
#pragma once

#include "persistence/file_system.hpp"

#include <cstdint>
#include <dlrun/error.hpp>
#include <string>

namespace dlrun::persistence {

enum class log_tail : std::uint8_t {
  /// Ends with a whole record.
  intact,
  /// Ends within a record, as when power or the process went away in the middle of a write: the
  /// file ends before the record does, or holds zeroes from the begin of a page to its end. That
  /// write was never acknowledged as synced.
  torn,
  /// Something else than what was written is in the middle, or where the last record was complete.
  damaged,
};

struct record_log_scan {
  log_tail tail = log_tail::intact;
  /// Whole records end here; what follows is of no use.
  std::uint64_t valid_bytes = 0;
  std::uint64_t file_bytes = 0;
  /// What is wrong with what follows; empty when intact.
  std::string why;
};

/// Reads all of `path`, a file in the format of RocksDB's log_format.h (blocks of 32 KiB; a header
/// of masked CRC32C, length and type before each fragment). Writes nothing. RocksDB itself either
/// drops a tail in silence or refuses torn and damaged alike: this tells them apart, and names the
/// offset.
result<record_log_scan> scan_record_log(file_system& files, const std::string& path);

} // namespace dlrun::persistence
