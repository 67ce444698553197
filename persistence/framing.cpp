#include "persistence/framing.hpp"

#include "base/crc32c.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::persistence {

namespace {
constexpr std::size_t magic_bytes = 8;
constexpr std::size_t format_at = 8;
constexpr std::size_t numbers_at = 16;
constexpr std::size_t checksum_at = 60;
} // namespace

tl::unexpected<error> fail_damaged(const std::string& path, std::uint64_t offset, std::string_view why) {
  return fail(error_code::storage_damaged, fmt::format("{} is damaged at byte {}: {}", path, offset, why));
}

std::array<std::byte, file_head::bytes> encode(const file_head& head) {
  DLRUN_CHECK(head.magic.size() == magic_bytes, "the magic '{}' is not of 8 bytes", head.magic);
  std::array<std::byte, file_head::bytes> bytes{};
  std::memcpy(bytes.data(), head.magic.data(), magic_bytes);
  put(bytes, format_at, head.format);
  for (std::size_t i = 0; i < head.numbers.size(); ++i) put(bytes, numbers_at + 8 * i, head.numbers[i]);
  put(bytes, checksum_at, base::crc32c(std::span(bytes).first(checksum_at)));
  return bytes;
}

result<std::array<std::uint64_t, 5>> decode_file_head(std::span<const std::byte> bytes,
                                                      const file_head& expected, const std::string& path) {
  if (bytes.size() < file_head::bytes) return fail_damaged(path, bytes.size(), "it ends within its head");
  if (as_text(bytes.first(magic_bytes)) != expected.magic)
    return fail_damaged(path, 0, fmt::format("it does not begin with '{}'", expected.magic));
  if (get<std::uint32_t>(bytes, checksum_at) != base::crc32c(bytes.first(checksum_at)))
    return fail_damaged(path, 0, "the checksum of its head is wrong");
  if (const auto format = get<std::uint32_t>(bytes, format_at); format != expected.format)
    return fail(error_code::bad_usage,
                fmt::format("{} has format {}, this dlrun reads format {}: use the version that wrote it",
                            path, format, expected.format));
  std::array<std::uint64_t, 5> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = get<std::uint64_t>(bytes, numbers_at + 8 * i);
  return numbers;
}

} // namespace dlrun::persistence
