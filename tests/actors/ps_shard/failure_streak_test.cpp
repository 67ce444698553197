#include "actors/ps_shard/failure_streak.hpp"

#include <gtest/gtest.h>

namespace dlrun::ps_shard {
namespace {

using std::chrono::seconds;

TEST(failure_streak, lasts_when_it_is_long_and_of_many) {
  const protocol::time_point begin{};
  failure_streak many;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(many.add(begin + std::chrono::milliseconds(i)));
  EXPECT_TRUE(many.add(begin + seconds(10)));
  failure_streak few;
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(few.add(begin + i * seconds(60)));
  EXPECT_TRUE(few.add(begin + seconds(240)));
}

TEST(failure_streak, begins_anew_after_a_success) {
  const protocol::time_point begin{};
  failure_streak failed;
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(failed.add(begin + i * seconds(60)));
  failed.end();
  EXPECT_FALSE(failed.add(begin + seconds(300)));
}

} // namespace
} // namespace dlrun::ps_shard
