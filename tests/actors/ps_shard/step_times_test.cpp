#include "actors/ps_shard/step_times.hpp"

#include <gtest/gtest.h>

namespace dlrun::ps_shard {
namespace {

protocol::time_point at(std::int64_t us) { return protocol::time_point{protocol::duration{us}}; }

TEST(step_times, quantiles_are_of_the_times_between_versions) {
  step_times times;
  EXPECT_EQ(times.quantiles(), protocol::step_time_quantiles{});
  std::int64_t now = 0;
  times.add({0}, at(now));
  for (std::uint64_t i = 1; i <= 100; ++i) times.add({i}, at(now += i <= 98 ? 10 : 50));
  EXPECT_EQ(times.quantiles(), (protocol::step_time_quantiles{10, 50, 50}));
}

TEST(step_times, a_version_that_is_told_again_when_it_is_in_the_log_is_no_step) {
  step_times times;
  for (std::uint64_t i = 0; i <= 100; ++i) {
    times.add({i}, at(static_cast<std::int64_t>(10 * i)));
    times.add({i}, at(static_cast<std::int64_t>(10 * i + 3)));
  }
  EXPECT_EQ(times.quantiles(), (protocol::step_time_quantiles{10, 10, 10}));
}

TEST(step_times, the_way_back_to_an_earlier_version_is_no_step) {
  step_times times;
  times.add({7}, at(0));
  times.add({8}, at(10));
  times.add({3}, at(5000));
  times.add({4}, at(5010));
  EXPECT_EQ(times.quantiles(), (protocol::step_time_quantiles{10, 10, 10}));
}

TEST(step_times, a_quantile_is_too_large_by_a_32nd_at_most) {
  for (std::int64_t us = 1; us < std::int64_t{1} << 42; us += us / 7 + 1) {
    step_times times;
    times.add({0}, at(0));
    times.add({1}, at(us));
    times.add({2}, at(2 * us));
    times.add({3}, at(2 * us + (std::int64_t{1} << 42))); // the largest is known exactly
    const auto found = static_cast<std::int64_t>(times.quantiles().p50_us);
    EXPECT_GE(found, us);
    EXPECT_LE(found, us + us / 32 + 1);
  }
}

} // namespace
} // namespace dlrun::ps_shard
