#include "base/crc32c.hpp"

#include "tests/persistence/payload.hpp"

#include <gtest/gtest.h>

namespace dlrun::base {
namespace {

TEST(crc32c, has_the_values_of_rfc_3720) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  std::string ascending;
  for (char byte = 0; byte < 32; ++byte) ascending += byte;
  EXPECT_EQ(crc32c(ascending), 0x46dd794eU);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(""), 0U);
}

TEST(crc32c, is_the_same_by_instruction_and_by_table_for_all_sizes_and_places) {
  if (!detail::has_crc_instruction()) return;
  const auto bytes = test::payload_of({1}, {1}, 40'000);
  for (std::size_t size = 0; size < 40'000; size += size < 70 ? 1 : 997)
    for (std::size_t offset = 0; offset < 9 && offset + size <= bytes.size(); ++offset) {
      const auto part = std::span(bytes).subspan(offset, size);
      ASSERT_EQ(detail::crc32c_by_instruction(17, part), detail::crc32c_by_table(17, part))
          << size << " " << offset;
    }
}

TEST(crc32c, can_be_continued_anywhere) {
  const auto bytes = test::payload_of({2}, {1}, 20'000);
  const auto whole = crc32c(bytes);
  for (std::size_t cut = 0; cut <= bytes.size(); cut += 611)
    EXPECT_EQ(crc32c_extend(crc32c(std::span(bytes).first(cut)), std::span(bytes).subspan(cut)), whole);
}

TEST(crc32c, of_two_parts_is_that_of_the_whole) {
  const auto bytes = test::payload_of({3}, {1}, 20'000);
  const auto whole = crc32c(bytes);
  for (std::size_t cut = 0; cut <= bytes.size(); cut += 100) {
    const auto second = std::span(bytes).subspan(cut);
    ASSERT_EQ(crc32c_combine(crc32c(std::span(bytes).first(cut)), crc32c(second), second.size()), whole)
        << cut;
  }
  EXPECT_EQ(crc32c_combine(0x8a9136aaU, 0, 0), 0x8a9136aaU);
  const std::vector<std::byte> zeroes(std::size_t{70} << 20);
  EXPECT_EQ(crc32c_combine(whole, crc32c(zeroes), zeroes.size()), crc32c_extend(whole, zeroes));
}

} // namespace
} // namespace dlrun::base
