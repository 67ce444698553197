#include "actors/ps_shard/transfer_times.hpp"

#include <gtest/gtest.h>

namespace dlrun::ps_shard {
namespace {

using namespace std::chrono_literals;

TEST(transfer_times, nothing_is_late_before_one_has_arrived) { EXPECT_FALSE(transfer_times{}.is_late(1h)); }

TEST(transfer_times, what_takes_more_than_twice_as_long_as_usual_is_late) {
  transfer_times times;
  for (int i = 0; i < 10; ++i) times.add(100ms);
  EXPECT_FALSE(times.is_late(220ms));
  EXPECT_TRUE(times.is_late(221ms));
}

TEST(transfer_times, of_four_links_one_that_is_ten_times_slower_does_not_become_usual) {
  transfer_times times;
  for (int i = 0; i < 100; ++i) times.add(i % 4 == 3 ? 1s : 100ms);
  EXPECT_FALSE(times.is_late(200ms));
  EXPECT_TRUE(times.is_late(400ms));
}

TEST(transfer_times, a_link_that_has_become_slow_for_all_is_usual_in_the_end) {
  transfer_times times;
  for (int i = 0; i < 10; ++i) times.add(100ms);
  for (int i = 0; i < 20; ++i) times.add(1s);
  EXPECT_FALSE(times.is_late(1900ms));
}

} // namespace
} // namespace dlrun::ps_shard
