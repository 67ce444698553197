/// The format of snapshot files, shared by their writer and their reader.
#pragma once

#include "persistence/log_record.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace dlrun::persistence {

inline constexpr std::string_view snapshot_magic = "dlrunsnp";
/// Each chunk but the last holds this much payload.
inline constexpr std::size_t snapshot_chunk_bytes = std::size_t{1} << 20;
inline constexpr std::size_t snapshot_metadata_bytes_max = std::size_t{16} << 20;

/// "40-2.snap": version 40 of timeline 2.
std::string snapshot_file_name(version_id version, timeline_id timeline);

/// Before each chunk: bytes (4), CRC32C (4) of the other fields and the chunk, offset in the
/// payload (8).
struct snapshot_chunk_head {
  static constexpr std::size_t encoded_bytes = 16;
  std::uint32_t bytes = 0;
  std::uint64_t offset = 0;
};
std::array<std::byte, snapshot_chunk_head::encoded_bytes> encode(const snapshot_chunk_head& head,
                                                                 std::span<const std::byte> chunk);

/// The last 48 bytes: magic (8), payload bytes (8), metadata bytes (8), file bytes (8), CRC32C of
/// the metadata (4), CRC32C of all chunk heads (4), zero (4), CRC32C of the 44 bytes before it (4).
struct snapshot_trailer {
  static constexpr std::size_t encoded_bytes = 48;
  std::uint64_t payload_bytes = 0;
  std::uint64_t metadata_bytes = 0;
  std::uint64_t file_bytes = 0;
  std::uint32_t metadata_crc32c = 0;
  std::uint32_t total_crc32c = 0;
};
std::array<std::byte, snapshot_trailer::encoded_bytes> encode(const snapshot_trailer& trailer);
/// nullopt when it is not one.
std::optional<snapshot_trailer> decode_snapshot_trailer(std::span<const std::byte> bytes);

} // namespace dlrun::persistence
