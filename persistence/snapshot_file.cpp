#include "persistence/snapshot_file.hpp"

#include "base/crc32c.hpp"
#include "persistence/framing.hpp"

#include <fmt/format.h>

namespace dlrun::persistence {

namespace {
constexpr std::string_view trailer_magic = "dlrunend";
constexpr std::size_t trailer_checksum_at = 44;
} // namespace

std::string snapshot_file_name(version_id version, timeline_id timeline) {
  return fmt::format("{}-{}.snap", version, timeline);
}

std::array<std::byte, snapshot_chunk_head::encoded_bytes> encode(const snapshot_chunk_head& head,
                                                                 std::span<const std::byte> chunk) {
  std::array<std::byte, snapshot_chunk_head::encoded_bytes> bytes{};
  put(bytes, 0, head.bytes);
  put(bytes, 8, head.offset);
  const auto crc = base::crc32c(std::span(bytes).first(4));
  put(bytes, 4, base::crc32c_extend(base::crc32c_extend(crc, std::span(bytes).subspan(8)), chunk));
  return bytes;
}

std::array<std::byte, snapshot_trailer::encoded_bytes> encode(const snapshot_trailer& trailer) {
  std::array<std::byte, snapshot_trailer::encoded_bytes> bytes{};
  std::memcpy(bytes.data(), trailer_magic.data(), trailer_magic.size());
  put(bytes, 8, trailer.payload_bytes);
  put(bytes, 16, trailer.metadata_bytes);
  put(bytes, 24, trailer.file_bytes);
  put(bytes, 32, trailer.metadata_crc32c);
  put(bytes, 36, trailer.total_crc32c);
  put(bytes, trailer_checksum_at, base::crc32c(std::span(bytes).first(trailer_checksum_at)));
  return bytes;
}

std::optional<snapshot_trailer> decode_snapshot_trailer(std::span<const std::byte> bytes) {
  if (bytes.size() != snapshot_trailer::encoded_bytes || as_text(bytes.first(8)) != trailer_magic)
    return std::nullopt;
  if (get<std::uint32_t>(bytes, trailer_checksum_at) != base::crc32c(bytes.first(trailer_checksum_at)))
    return std::nullopt;
  return snapshot_trailer{get<std::uint64_t>(bytes, 8), get<std::uint64_t>(bytes, 16),
                          get<std::uint64_t>(bytes, 24), get<std::uint32_t>(bytes, 32),
                          get<std::uint32_t>(bytes, 36)};
}

} // namespace dlrun::persistence
