/// CRC32C, at the speed of the memory where the processor has an instruction for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace dlrun::base {

/// The CRC with the Castagnoli polynomial (RFC 3720, section 12.1) of the bytes that `crc` is of,
/// followed by `bytes`. Start with 0. Uses SSE4.2 when the processor has it; the same value either
/// way. Thread-safe.
std::uint32_t crc32c_extend(std::uint32_t crc, std::span<const std::byte> bytes);

inline std::uint32_t crc32c(std::span<const std::byte> bytes) { return crc32c_extend(0, bytes); }
inline std::uint32_t crc32c(std::string_view bytes) { return crc32c(std::as_bytes(std::span(bytes))); }

/// The CRC of what `first` is of, followed by `second_bytes` bytes that `second` is of.
/// Thread-safe.
std::uint32_t crc32c_combine(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes);

namespace detail {
/// The two ways, for tests. The second requires has_crc_instruction().
std::uint32_t crc32c_by_table(std::uint32_t crc, std::span<const std::byte> bytes);
std::uint32_t crc32c_by_instruction(std::uint32_t crc, std::span<const std::byte> bytes);
bool has_crc_instruction();
} // namespace detail

} // namespace dlrun::base
