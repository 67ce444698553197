#include "data/content_digest.hpp"

#include "base/sha256.hpp"
#include "tests/data/files.hpp"

#include <gtest/gtest.h>

namespace dlrun::data {
namespace {

/// `records` records of three bytes, behind a head of five that is no part of them.
stored_array array_of(std::vector<std::uint8_t> values, std::uint64_t records) {
  values.insert(values.begin(), 5, 0xEE);
  stored_array array;
  const test::temporary_folder folder;
  array.memory = std::make_shared<blob>(blob::map_file(folder.write("x", values)).value());
  array.offset = 5;
  array.type = element_type::u1;
  array.dims = {records, 3};
  return array;
}

std::vector<std::uint8_t> spread(std::uint64_t records) {
  std::vector<std::uint8_t> values(static_cast<std::size_t>(records * 3));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(i * 7);
  return values;
}

TEST(content_digest, pieces_are_disjoint_and_hold_every_record) {
  for (const std::uint64_t records : {1, 2, 63, 64, 65, 200, 60'000}) {
    std::uint64_t next = 0;
    for (std::uint64_t piece = 0; piece < digest_pieces && next < records; ++piece) {
      const auto run = records_of_piece(records, piece);
      EXPECT_EQ(run.first, next);
      EXPECT_GT(run.end, run.first);
      next = run.end;
    }
    EXPECT_EQ(next, records);
    EXPECT_EQ(digest(array_of(spread(records), records)).size(),
              (records + records_of_piece(records, 0).end - 1) / records_of_piece(records, 0).end);
  }
}

TEST(content_digest, a_piece_is_the_sha256_of_its_records) {
  const auto values = spread(200);
  const auto pieces = digest(array_of(values, 200));
  const auto run = records_of_piece(200, 3);
  const std::string_view bytes{reinterpret_cast<const char*>(values.data()) + run.first * 3,
                               static_cast<std::size_t>((run.end - run.first) * 3)};
  EXPECT_EQ(pieces[3], base::sha256_of(bytes));
}

TEST(content_digest, a_changed_byte_changes_the_piece_that_holds_it_and_no_other) {
  auto values = spread(1000);
  const auto before = digest(array_of(values, 1000));
  values[3 * 500] ^= 1U;
  const auto after = digest(array_of(values, 1000));
  ASSERT_EQ(after.size(), before.size());
  for (std::size_t piece = 0; piece < before.size(); ++piece) {
    const auto run = records_of_piece(1000, piece);
    EXPECT_EQ(before[piece] != after[piece], run.first <= 500 && 500 < run.end) << piece;
  }
}

} // namespace
} // namespace dlrun::data
