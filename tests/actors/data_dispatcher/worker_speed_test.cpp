#include "actors/data_dispatcher/worker_speed.hpp"

#include <gtest/gtest.h>

namespace dlrun::data_dispatcher {
namespace {

using std::chrono::milliseconds;

/// A worker whose statuses come each 100 ms; it is silent after a second.
class worker_speed_test : public testing::Test {
protected:
  /// It has computed `slots` since its start, in so much time, and is at `computing` slots.
  void measure(std::uint64_t slots, milliseconds work, milliseconds unheard = milliseconds(100),
               std::uint32_t computing = 0, milliseconds at_it = {}) {
    protocol::worker_status said;
    said.slots_computed = slots;
    said.compute_us = static_cast<std::uint64_t>(work.count()) * 1000;
    said.computing = computing;
    said.computing_us = static_cast<std::uint64_t>(at_it.count()) * 1000;
    speed.measure(said, unheard, silent_after);
  }

  static constexpr auto silent_after = milliseconds(1000);
  worker_speed speed;
};

TEST_F(worker_speed_test, is_what_it_has_computed_by_the_time_that_it_took) {
  EXPECT_EQ(speed.slots_per_second(), 0);
  measure(10, milliseconds(100));
  measure(20, milliseconds(200));
  EXPECT_NEAR(speed.slots_per_second(), 100, 1e-6);
  EXPECT_EQ(speed.slots_computed(), 20U);
}

TEST_F(worker_speed_test, what_it_took_when_it_was_new_can_be_left_out) {
  protocol::worker_status first;
  first.slots_computed = 1;
  first.compute_us = 5'000'000;
  speed.begin(first);
  EXPECT_EQ(speed.slots_per_second(), 0);
  EXPECT_EQ(speed.slots_computed(), 1U);
  measure(11, milliseconds(5100));
  EXPECT_NEAR(speed.slots_per_second(), 100, 1e-6);
}

TEST_F(worker_speed_test, a_silence_of_several_statuses_is_time_that_came_to_nothing) {
  measure(10, milliseconds(100));
  measure(20, milliseconds(200), milliseconds(300));
  EXPECT_NEAR(speed.slots_per_second(), 100, 1e-6) << "one status was late";
  measure(30, milliseconds(300), milliseconds(500));
  EXPECT_LT(speed.slots_per_second(), 50);
}

TEST_F(worker_speed_test, but_not_the_time_that_it_has_been_at_what_it_computes) {
  measure(10, milliseconds(100));
  measure(20, milliseconds(200), milliseconds(500), 1, milliseconds(450));
  EXPECT_NEAR(speed.slots_per_second(), 100, 1e-6) << "that counts when it is done";
}

/// A link was cut, while it worked as fast as ever.
TEST_F(worker_speed_test, a_long_silence_is_no_slowness) {
  measure(10, milliseconds(100));
  measure(2010, milliseconds(20'100), milliseconds(20'000));
  EXPECT_NEAR(speed.slots_per_second(), 100, 1e-6);
}

TEST_F(worker_speed_test, it_is_at_most_as_fast_as_what_it_is_at_and_its_silence_allow) {
  measure(10, milliseconds(100));
  const auto at_once = speed.at_most({}, silent_after);
  EXPECT_GE(at_once, 100);
  EXPECT_EQ(speed.at_most(milliseconds(200), silent_after), at_once) << "no status is late";
  EXPECT_LT(speed.at_most(milliseconds(900), silent_after), 20);
  measure(10, milliseconds(100), milliseconds(100), 2, milliseconds(900));
  EXPECT_LT(speed.at_most({}, silent_after), 20);
}

TEST_F(worker_speed_test, a_status_of_less_work_than_is_known_changes_nothing) {
  measure(10, milliseconds(100));
  measure(5, milliseconds(200));
  EXPECT_NEAR(speed.slots_per_second(), 100, 1e-6);
  EXPECT_EQ(speed.slots_computed(), 10U);
}

} // namespace
} // namespace dlrun::data_dispatcher
