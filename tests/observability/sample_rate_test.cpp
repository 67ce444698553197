#include "observability/sample_rate.hpp"

#include "tests/observability/watched_run.hpp"

#include <gtest/gtest.h>

namespace dlrun::observability {
namespace {

using std::chrono::milliseconds;
using test::begin;

TEST(sample_rate, is_not_known_before_two_looks) {
  sample_rate rate{100};
  EXPECT_EQ(rate.at_step(0, begin), 0);
  EXPECT_EQ(rate.at_step(10, begin + milliseconds(100)), 0);
  EXPECT_EQ(rate.at_step(20, begin + milliseconds(1100)), 1000);
}

TEST(sample_rate, of_a_resumed_run_is_that_of_now) {
  sample_rate rate{10};
  rate.at_step(900, begin);
  EXPECT_EQ(rate.at_step(910, begin + milliseconds(1000)), 100);
}

TEST(sample_rate, goes_on_after_going_back) {
  sample_rate rate{10};
  rate.at_step(100, begin);
  rate.at_step(200, begin + milliseconds(1000));
  EXPECT_EQ(rate.at_step(50, begin + milliseconds(1100)), 1000);
  EXPECT_EQ(rate.at_step(150, begin + milliseconds(2100)), 1000);
}

TEST(sample_rate, falls_while_nothing_moves) {
  sample_rate rate{10};
  rate.at_step(100, begin);
  rate.at_step(200, begin + milliseconds(1000));
  EXPECT_EQ(rate.at_step(200, begin + milliseconds(11'000)), 1);
}

} // namespace
} // namespace dlrun::observability
