#include "actors/protocol/speed_meter.hpp"

#include <gtest/gtest.h>

namespace dlrun::protocol {
namespace {

TEST(speed_meter, knows_nothing_before_any_work) {
  const speed_meter meter;
  EXPECT_EQ(meter.slots_per_second(), 0);
  EXPECT_GT(meter.at_most(1, 0), 1e300);
}

TEST(speed_meter, forgets_two_thirds_in_half_a_second_of_work_whatever_the_words_are) {
  for (const int words : {10, 50}) {
    speed_meter meter;
    for (int i = 0; i < 100; ++i) meter.add(10, 0.1);
    for (int i = 0; i < words; ++i) meter.add(0, 0.5 / words);
    EXPECT_NEAR(meter.slots_per_second(), 37, 2) << words;
  }
}

TEST(speed_meter, a_hiccup_weighs_what_it_took) {
  speed_meter meter;
  for (int i = 0; i < 100; ++i) meter.add(10, 0.1);
  meter.add(0, 0.05);
  EXPECT_NEAR(meter.slots_per_second(), 100, 10);
}

TEST(speed_meter, work_of_long_ago_weighs_no_more_than_what_was_measured_from_the_start) {
  speed_meter from_the_start, past;
  for (int i = 0; i < 3000; ++i) from_the_start.add(3, 0.1);
  past.add_past(9000, 300);
  EXPECT_NEAR(past.slots_per_second(), 30, 1e-9);
  EXPECT_NEAR(past.at_most(1, 2), from_the_start.at_most(1, 2), 1);
  speed_meter young;
  young.add_past(3, 0.1);
  EXPECT_NEAR(young.at_most(1, 0.9), 4, 1e-9) << "what took no longer is taken as it is";
}

TEST(speed_meter, of_slots_that_take_long_it_is_a_mean) {
  speed_meter meter;
  for (int i = 0; i < 10; ++i) meter.add(4, 4);
  meter.add(4, 8);
  EXPECT_NEAR(meter.slots_per_second(), 0.77, 0.02);
}

TEST(speed_meter, what_is_under_way_bounds_it_when_it_takes_longer_than_usual) {
  speed_meter meter;
  for (int i = 0; i < 10; ++i) meter.add(4, 4);
  EXPECT_GE(meter.at_most(4, 3.9), meter.slots_per_second());
  EXPECT_LT(meter.at_most(4, 40), meter.slots_per_second() / 2);
}

} // namespace
} // namespace dlrun::protocol
