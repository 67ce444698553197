#include "base/crc32c.hpp"

#include <array>
#include <cstring>

#ifdef __x86_64__
#include <nmmintrin.h>
#endif

namespace dlrun::base {

namespace {

constexpr std::uint32_t polynomial = 0x82f63b78; // Castagnoli, bits reversed

/// tables[k][b]: what byte b does to the CRC when k more bytes follow it (Kounavis and Berry, "A
/// Systematic Approach to Building High Performance Software-based CRC Generators", 2005: "slicing
/// by 8").
using byte_tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr byte_tables make_byte_tables() {
  byte_tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? polynomial : 0U);
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t byte = 0; byte < 256; ++byte)
      tables[k][byte] = (tables[k - 1][byte] >> 8) ^ tables[0][tables[k - 1][byte] & 0xffU];
  return tables;
}

constexpr byte_tables by_byte = make_byte_tables();

std::uint64_t load_word(const std::byte* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

/// What `stride` zero bytes do to a CRC: linear, so the effect of each of its four bytes is looked
/// up and combined.
struct zeroes_operator {
  std::array<std::array<std::uint32_t, 256>, 4> of_byte;

  constexpr std::uint32_t operator()(std::uint32_t crc) const {
    return of_byte[0][crc & 0xffU] ^ of_byte[1][(crc >> 8) & 0xffU] ^ of_byte[2][(crc >> 16) & 0xffU] ^
           of_byte[3][crc >> 24];
  }
};

zeroes_operator make_zeroes_operator(std::size_t stride) {
  std::array<std::uint32_t, 32> of_bit{};
  for (std::size_t bit = 0; bit < 32; ++bit) {
    std::uint32_t crc = std::uint32_t{1} << bit;
    for (std::size_t i = 0; i < stride; ++i) crc = (crc >> 8) ^ by_byte[0][crc & 0xffU];
    of_bit[bit] = crc;
  }
  zeroes_operator made{};
  for (std::size_t place = 0; place < 4; ++place)
    for (std::size_t byte = 0; byte < 256; ++byte)
      for (std::size_t bit = 0; bit < 8; ++bit)
        if ((byte >> bit & 1U) != 0) made.of_byte[place][byte] ^= of_bit[place * 8 + bit];
  return made;
}

/// Polynomials over GF(2) modulo the CRC's, bits reversed: the highest bit is the coefficient of
/// x^0.
constexpr std::uint32_t one = 0x80000000;

std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (std::uint32_t power = one; power != 0; power >>= 1) {
    if ((a & power) != 0) product ^= b;
    b = (b >> 1) ^ ((b & 1U) != 0 ? polynomial : 0U); // times x
  }
  return product;
}

} // namespace

namespace detail {

std::uint32_t crc32c_by_table(std::uint32_t crc, std::span<const std::byte> bytes) {
  std::uint64_t state = ~crc;
  const auto* at = bytes.data();
  const auto* const end = at + bytes.size();
  for (; end - at >= 8; at += 8) {
    const std::uint64_t word = load_word(at) ^ (state & 0xffffffffU);
    state = 0;
    for (std::size_t i = 0; i < 8; ++i) state ^= by_byte[7 - i][(word >> (8 * i)) & 0xffU];
  }
  for (; at != end; ++at)
    state = (state >> 8) ^ by_byte[0][(state ^ static_cast<std::uint64_t>(*at)) & 0xffU];
  return ~static_cast<std::uint32_t>(state);
}

#ifdef __x86_64__

bool has_crc_instruction() {
  static const bool has = __builtin_cpu_supports("sse4.2") != 0;
  return has;
}

/// Three independent chains hide the latency of the instruction (3 cycles, one a cycle): V. Gopal
/// et al., "Fast CRC Computation for iSCSI Polynomial Using CRC32 Instruction", Intel 2011. The
/// chains are joined by what the zeroes of their length do to the earlier one.
__attribute__((target("sse4.2"))) std::uint32_t crc32c_by_instruction(std::uint32_t crc,
                                                                      std::span<const std::byte> bytes) {
  constexpr std::size_t stride = 2048;
  static const zeroes_operator skip = make_zeroes_operator(stride);
  std::uint64_t state = ~crc;
  const auto* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 3 * stride; left -= 3 * stride, at += 3 * stride) {
    std::uint64_t second = 0;
    std::uint64_t third = 0;
    for (std::size_t i = 0; i < stride; i += 8) {
      state = _mm_crc32_u64(state, load_word(at + i));
      second = _mm_crc32_u64(second, load_word(at + stride + i));
      third = _mm_crc32_u64(third, load_word(at + 2 * stride + i));
    }
    const auto two = skip(static_cast<std::uint32_t>(state)) ^ static_cast<std::uint32_t>(second);
    state = skip(two) ^ static_cast<std::uint32_t>(third);
  }
  for (; left >= 8; left -= 8, at += 8) state = _mm_crc32_u64(state, load_word(at));
  auto narrow = static_cast<std::uint32_t>(state);
  for (; left > 0; --left, ++at) narrow = _mm_crc32_u8(narrow, static_cast<std::uint8_t>(*at));
  return ~narrow;
}

#else

bool has_crc_instruction() { return false; }
std::uint32_t crc32c_by_instruction(std::uint32_t crc, std::span<const std::byte> bytes) {
  return crc32c_by_table(crc, bytes);
}

#endif

} // namespace detail

/// Zero bytes behind multiply what a CRC is of by x^8 each.
std::uint32_t crc32c_combine(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes) {
  std::uint32_t shift = one;
  std::uint32_t square = one >> 8;
  for (; second_bytes != 0; second_bytes >>= 1) {
    if ((second_bytes & 1U) != 0) shift = multiply(shift, square);
    square = multiply(square, square);
  }
  return multiply(shift, first) ^ second;
}

std::uint32_t crc32c_extend(std::uint32_t crc, std::span<const std::byte> bytes) {
  return detail::has_crc_instruction() ? detail::crc32c_by_instruction(crc, bytes)
                                       : detail::crc32c_by_table(crc, bytes);
}

} // namespace dlrun::base
