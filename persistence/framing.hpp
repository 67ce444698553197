/// How numbers and heads are laid out in our own files: little-endian, each head with a checksum of
/// its own.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <dlrun/error.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace dlrun::persistence {

static_assert(std::endian::native == std::endian::little, "the files are little-endian");

/// Writes `value` at `offset` of `bytes`.
template <class Integer>
void put(std::span<std::byte> bytes, std::size_t offset, Integer value) {
  std::memcpy(bytes.subspan(offset, sizeof value).data(), &value, sizeof value);
}

template <class Integer>
Integer get(std::span<const std::byte> bytes, std::size_t offset) {
  Integer value{};
  std::memcpy(&value, bytes.subspan(offset, sizeof value).data(), sizeof value);
  return value;
}

inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The first 64 bytes of a segment or a snapshot: magic (8), format (4), zero (4), five numbers
/// (40), zero (4), CRC32C of the 60 bytes before it (4).
struct file_head {
  static constexpr std::size_t bytes = 64;
  std::string_view magic;
  std::uint32_t format = 1;
  std::array<std::uint64_t, 5> numbers{};
};

std::array<std::byte, file_head::bytes> encode(const file_head& head);

/// The numbers of a head whose magic and format must be those of `expected`.
/// @returns storage_damaged naming `path`; bad_usage naming both formats for a whole head of
/// another one, so that nobody drops for damage what another version can read.
result<std::array<std::uint64_t, 5>> decode_file_head(std::span<const std::byte> bytes,
                                                      const file_head& expected, const std::string& path);

/// storage_damaged: "`path` is damaged at byte `offset`: `why`".
tl::unexpected<error> fail_damaged(const std::string& path, std::uint64_t offset, std::string_view why);

} // namespace dlrun::persistence
