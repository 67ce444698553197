#include "actors/coordinator/journal_copy.hpp"

#include <gtest/gtest.h>

namespace dlrun::coordinator {
namespace {

TEST(journal_copy, comes_in_parts_that_name_the_same_whole) {
  std::map<std::string, std::string> entries{{"course", std::string("\0\xff", 2)}, {"workers", ""}};
  entries["evaluations/0"] = std::string(3 * protocol::journal_part_bytes_max, 'x');
  std::string bytes;
  const auto first = part_of_journal(entries, 0);
  for (auto part = first; bytes.size() < part.bytes_of_all; part = part_of_journal(entries, bytes.size())) {
    ASSERT_FALSE(part.bytes.empty());
    EXPECT_LE(part.bytes.size(), protocol::journal_part_bytes_max);
    EXPECT_EQ(part.crc32c, first.crc32c);
    bytes += part.bytes;
  }
  EXPECT_EQ(journal_from(bytes), entries);
  entries["workers"] = "2";
  EXPECT_NE(part_of_journal(entries, 0).crc32c, first.crc32c) << "it was written meanwhile";
  EXPECT_EQ(part_of_journal(entries, 1ULL << 40).bytes, "");
}

TEST(journal_copy, is_none_of_other_bytes) { EXPECT_EQ(journal_from("\xff\xff\xff"), std::nullopt); }

} // namespace
} // namespace dlrun::coordinator
