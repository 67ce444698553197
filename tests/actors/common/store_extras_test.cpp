#include "actors/common/store_extras.hpp"

#include <gtest/gtest.h>

namespace dlrun::common {
namespace {

TEST(step_extra, comes_back_as_it_was_written) {
  const step_extra written{3, 1ULL << 63, {5, ~0ULL}, {10, 1, 640, 2, 3}};
  const auto read = decode_step_extra(encode(written));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->revision, written.revision);
  EXPECT_EQ(read->coupled, written.coupled);
  EXPECT_EQ(read->partials, written.partials);
  EXPECT_EQ(read->ledger, written.ledger);
}

TEST(step_extra, bytes_that_are_none_are_damage) {
  const auto read = decode_step_extra("\xff\xff\xff");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, error_code::storage_damaged);
}

TEST(snapshot_extra, is_taken_for_the_range_that_it_is_of_and_no_other) {
  const snapshot_extra written{
      {2, 5, 64, 300}, 290, protocol::training_metrics{.epoch = 3, .sum_bits = {7}}, {4, 0, 64, 0, 0}};
  const auto bytes = encode(written);
  const auto of = std::as_bytes(std::span{bytes});
  const auto read = decode_snapshot_extra(of, written.range, 290, 1);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->metrics, written.metrics);
  EXPECT_EQ(read->ledger, written.ledger);
  EXPECT_EQ(decode_snapshot_extra(of, written.range, 291, 1).error().code, error_code::bad_usage);
  EXPECT_EQ(decode_snapshot_extra(of, {2, 6, 64, 300}, 290, 1).error().code, error_code::bad_usage);
  EXPECT_EQ(decode_snapshot_extra(of, written.range, 290, 2).error().code, error_code::bad_usage);
  EXPECT_EQ(decode_snapshot_extra(of.first(3), written.range, 290, 1).error().code,
            error_code::storage_damaged);
}

} // namespace
} // namespace dlrun::common
