#include "actors/ps_shard/ledger.hpp"

#include <gtest/gtest.h>
#include <random>

namespace dlrun::ps_shard {
namespace {

using protocol::make_slot_range;

TEST(coverage, counts_each_slot_of_a_gradient_once) {
  const coverage one(make_slot_range(2, 4));
  EXPECT_EQ(one.count({1}), 0U);
  EXPECT_EQ(one.count({2}), 1U);
  EXPECT_EQ(one.count({3}), 1U);
  EXPECT_EQ(one.count({4}), 0U);
  EXPECT_EQ(coverage().count({0}), 0U);
}

TEST(coverage, touches_what_it_shares_a_slot_with) {
  coverage some(make_slot_range(2, 4));
  some.add(coverage(make_slot_range(6, 7)));
  EXPECT_TRUE(some.touches(make_slot_range(3, 6)));
  EXPECT_TRUE(some.touches(make_slot_range(6, 9)));
  EXPECT_FALSE(some.touches(make_slot_range(4, 6)));
  EXPECT_FALSE(some.touches(make_slot_range(0, 2)));
}

TEST(coverage, adds_up_like_an_array_of_counters) {
  std::mt19937 random(7); // NOLINT: the same every time
  for (int round = 0; round < 300; ++round) {
    coverage sum;
    std::vector<std::uint32_t> expected(20);
    for (int i = 0; i < 8; ++i) {
      const auto begin = static_cast<std::uint32_t>(random() % 20);
      const auto end = begin + static_cast<std::uint32_t>(random() % (21 - begin));
      sum.add(coverage(make_slot_range(begin, end)));
      for (auto slot = begin; slot < end; ++slot) ++expected[slot];
    }
    for (std::uint32_t slot = 0; slot < 20; ++slot)
      ASSERT_EQ(sum.count({slot}), expected[slot]) << "round " << round;
  }
}

TEST(ledger, a_complete_step_counts_all_its_records) {
  ledger book;
  book.applied({0}, coverage(make_slot_range(0, 3)), {4, 4, 2});
  EXPECT_EQ(book.totals(), (protocol::applied_ledger{1, 0, 10, 0, 0}));
}

TEST(ledger, a_missing_and_a_doubled_slot_are_seen) {
  coverage value(make_slot_range(0, 2));
  value.add(coverage(make_slot_range(1, 2)));
  ledger book;
  book.applied({0}, value, {4, 5, 6});
  EXPECT_EQ(book.totals(), (protocol::applied_ledger{1, 0, 9, 6, 5}));
}

TEST(ledger, a_step_applied_again_is_redone) {
  ledger book;
  for (const std::uint64_t step : {0, 1, 1, 0}) book.applied({step}, coverage(make_slot_range(0, 1)), {1});
  EXPECT_EQ(book.totals().steps_applied, 4U);
  EXPECT_EQ(book.totals().steps_redone, 2U);
}

TEST(ledger, steps_before_it_was_opened_count_as_applied) {
  ledger book;
  book.restart({.samples_applied = 50}, {5});
  book.applied({5}, coverage(make_slot_range(0, 1)), {1});
  EXPECT_EQ(book.totals().steps_redone, 0U);
  book.applied({4}, coverage(make_slot_range(0, 1)), {1});
  EXPECT_EQ(book.totals().steps_redone, 1U);
}

} // namespace
} // namespace dlrun::ps_shard
