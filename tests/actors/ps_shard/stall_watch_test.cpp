// What is said of a disk that takes nothing, and when there is no hope.
#include "actors/ps_shard/stall_watch.hpp"

#include "actors/ps_shard/divergence_watch.hpp"
#include "actors/ps_shard/replay_cost.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::ps_shard {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Optional;

class stall_watch_test : public testing::Test {
protected:
  static constexpr protocol::time_point begin{seconds(100)};
  const error full{error_code::disk_full, "/run/log: no space"};
  const error quota{error_code::limit_exceeded, "/run/log holds 10 bytes and may hold 10"};

  stall_watch watch{{3}};
};

TEST_F(stall_watch_test, a_log_that_stands_still_and_moves_again_is_told_each_time) {
  EXPECT_EQ(watch.on_log(full, begin), (stall_watch::word{true, "ps_shard 3 pauses: /run/log: no space"}));
  EXPECT_TRUE(watch.is_stalled());
  EXPECT_EQ(watch.on_log(std::nullopt, begin)->is_stalled, false);
  EXPECT_FALSE(watch.is_stalled());
}

TEST_F(stall_watch_test, a_store_that_cannot_be_opened_says_so_once) {
  EXPECT_TRUE(watch.on_opening(full, begin));
  EXPECT_FALSE(watch.on_opening(full, begin + seconds(1)));
  EXPECT_TRUE(watch.on_log(std::nullopt, begin + seconds(2)));
}

TEST_F(stall_watch_test, snapshots_are_told_of_only_while_the_log_moves) {
  EXPECT_THAT(watch.on_snapshot(full, begin)->text, HasSubstr("cannot take snapshots"));
  EXPECT_FALSE(watch.on_snapshot(full, begin));
  watch.on_log(full, begin);
  EXPECT_FALSE(watch.on_log(std::nullopt, begin)) << "snapshots still fail";
  EXPECT_TRUE(watch.on_snapshot(std::nullopt, begin));
}

TEST_F(stall_watch_test,
       a_quota_that_stays_used_up_is_hopeless_after_five_seconds_and_again_after_five_more) {
  watch.on_log(quota, begin);
  EXPECT_FALSE(watch.find_hopeless(begin + milliseconds(4999)));
  ASSERT_TRUE(watch.find_hopeless(begin + seconds(5)));
  EXPECT_FALSE(watch.find_hopeless(begin + seconds(6)));
  EXPECT_EQ(watch.find_hopeless(begin + seconds(10))->message, quota.message);
}

TEST_F(stall_watch_test, a_full_disk_is_waited_for) {
  watch.on_log(full, begin);
  EXPECT_FALSE(watch.find_hopeless(begin + seconds(1000)));
}

TEST(divergence_watch, waits_for_the_worker_that_knows_more_then_says_so_again_and_again) {
  divergence_watch watch;
  const protocol::time_point begin{seconds(7)};
  EXPECT_FALSE(watch.due(begin, milliseconds(100)));
  protocol::divergence what;
  what.step = {5};
  watch.found(what, begin);
  EXPECT_FALSE(watch.due(begin + milliseconds(2399), milliseconds(100)));
  ASSERT_TRUE(watch.due(begin + milliseconds(2400), milliseconds(100)));
  EXPECT_EQ(watch.due(begin + seconds(9), milliseconds(100))->step, step_id{5});
  watch.forget();
  EXPECT_FALSE(watch.due(begin + seconds(10), milliseconds(100)));
}

TEST(replay_cost, counts_what_is_replayed_and_what_is_only_verified) {
  replay_cost cost;
  for (int i = 0; i < 1000; ++i) cost.add(milliseconds(1));
  const auto estimate = [&](const std::vector<version_id>& snapshots) {
    return static_cast<double>(cost.estimate_us({100}, snapshots));
  };
  EXPECT_NEAR(estimate({}), 200'000, 1);
  EXPECT_NEAR(estimate({{90}}), 15'000 + 50'000, 1);
  EXPECT_NEAR(estimate({{10}, {80}, {90}}), 15'000 + 10'000, 1);
  EXPECT_NEAR(estimate({{80}, {110}}), 10'000, 1) << "a snapshot that is ahead";
}

} // namespace
} // namespace dlrun::ps_shard
