#include "actors/ps_shard/sum_buffers.hpp"

#include <gtest/gtest.h>
#include <optional>
#include <set>

namespace dlrun::ps_shard {
namespace {

TEST(sum_buffers, lends_again_what_came_back_and_never_one_twice) {
  sum_buffers sums(100);
  std::set<const float*> seen;
  for (int round = 0; round < 10; ++round) {
    const auto first = sums.lend(), second = sums.lend();
    EXPECT_EQ(first->size(), 100U);
    EXPECT_NE(first, second);
    seen.insert(first->data());
    seen.insert(second->data());
  }
  EXPECT_EQ(seen.size(), 2U);
}

TEST(sum_buffers, keep_few_that_nobody_uses) {
  sum_buffers sums(100);
  std::vector<std::shared_ptr<std::vector<float>>> many;
  for (int i = 0; i < 50; ++i) many.push_back(sums.lend());
  const std::weak_ptr<std::vector<float>> last = many.back();
  many.clear();
  EXPECT_TRUE(last.expired());
  const auto again = sums.lend();
  EXPECT_EQ(again->size(), 100U);
}

TEST(sum_buffers, what_is_lent_outlives_them) {
  std::optional<sum_buffers> sums(std::in_place, 100);
  const auto lent = sums->lend();
  sums.reset();
  lent->at(99) = 1;
  EXPECT_EQ(lent->at(99), 1);
}

} // namespace
} // namespace dlrun::ps_shard
