#include "data/normalisation.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <gtest/gtest.h>
#include <numeric>
#include <zlib.h>

namespace dlrun::data {
namespace {

/// What each byte becomes.
std::array<float, 256> normalisation_table(double mean, double std) {
  std::array<std::uint8_t, 256> bytes{};
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  std::array<float, 256> table{};
  normalise(bytes, element_type::u1, mean, std, table);
  return table;
}

std::uint32_t checksum(const std::array<float, 256>& table) {
  return static_cast<std::uint32_t>(::crc32(0, reinterpret_cast<const Bytef*>(table.data()), sizeof table));
}

// Expected values: numpy 1.24, (numpy.arange(256, dtype=float32) / 255. - mean) / std.
TEST(normalisation, has_the_bits_of_numpy) {
  const auto table = normalisation_table(0.2860, 0.3530);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(table[0]), 0xbf4f6929U);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(table[73]), 0x3a4bdaf9U);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(table[255]), 0x4001734fU);
  EXPECT_EQ(checksum(table), 0x4ae0e75bU);
  EXPECT_EQ(checksum(normalisation_table(0.1307, 0.3081)), 0x8524d6e0U);
}

TEST(normalisation, without_mean_and_std_maps_bytes_on_0_to_1) {
  const auto table = normalisation_table(0, 1);
  EXPECT_EQ(table[0], 0.0F);
  EXPECT_EQ(table[255], 1.0F);
  EXPECT_EQ(checksum(table), 0xb438ec03U);
}

} // namespace
} // namespace dlrun::data
