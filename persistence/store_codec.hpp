/// Keys and values of a store's tables in RocksDB (docs/formats.md).
#pragma once

#include "persistence/log_record.hpp"
#include "persistence/segment_set.hpp"

#include <cstdint>
#include <dlrun/error.hpp>
#include <dlrun/ids.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlrun::persistence {

namespace keys {
inline constexpr const char* opener = "opener";
inline constexpr const char* history = "history";
inline constexpr const char* floor = "floor";
inline constexpr std::string_view snapshot_prefix = "snapshot/";

/// Big-endian, so that keys are in the order of steps.
std::string of_step(step_id step);
/// nullopt when it is no such key.
std::optional<step_id> to_step(std::string_view key);
/// Above every step.
std::string after_all_steps();
std::string of_snapshot(version_id version);
} // namespace keys

/// The value of a key as RocksDB holds it: a checksum of key and body, then the body, one of those
/// below. RocksDB's own checksums are of what it reads from a disk; between two of them, and for
/// hours in its memory, nothing else would notice a flipped bit.
std::string seal_value(std::string_view key, std::string_view body);
/// The body. Of a store that was written before there were such checksums it is all of `value`.
/// @returns nullopt when it is not what was sealed under that key.
std::optional<std::string_view> unseal_value(std::string_view key, std::string_view value);

/// A log record as RocksDB holds it.
struct logged_record {
  record_head head;
  std::uint32_t payload_crc32c = 0;
  /// Where the payload is, if it is not `inlined`.
  std::optional<segment_place> place;
  std::string inlined;
};

// Sealed values and back. nullopt when the bytes are no such value.
std::string encode(const log_record& record, std::uint32_t payload_crc32c,
                   const std::optional<segment_place>& place);
std::optional<logged_record> decode_record(step_id step, std::string_view bytes);

std::string encode(const snapshot_info& snapshot);
std::optional<snapshot_info> decode_snapshot(std::string_view key, std::string_view bytes);

std::string encode(const std::vector<history_entry>& history);
std::optional<std::vector<history_entry>> decode_history(std::string_view bytes);

std::string encode_opener(incarnation opener);
std::optional<incarnation> decode_opener(std::string_view bytes);

std::string encode_floor(version_id floor);
std::optional<version_id> decode_floor(std::string_view bytes);

} // namespace dlrun::persistence
