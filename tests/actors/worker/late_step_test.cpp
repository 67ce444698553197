#include "actors/worker/late_step.hpp"

#include <gtest/gtest.h>

namespace dlrun::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A worker that has seen steps of 400 ms, with slots of 50 ms.
class late_step_test : public testing::Test {
protected:
  late_step_test() {
    late.note_slot(milliseconds(50));
    for (; step < 4; now += milliseconds(400)) late.open({step++}, now);
    opened = now;
    late.open({step}, now);
  }

  late_step late;
  std::uint64_t step = 0;
  protocol::time_point now{std::chrono::hours(1)};
  protocol::time_point opened;
};

TEST_F(late_step_test, who_is_done_waits_for_a_slot_and_a_quarter_of_what_it_took) {
  late.wait(true, opened + milliseconds(200));
  late.wait(true, opened + milliseconds(220)); // still
  EXPECT_EQ(late.due(), opened + milliseconds(200 + 50 + 50));
}

TEST_F(late_step_test, who_has_no_part_in_a_step_goes_by_what_steps_took) {
  late.wait(false, opened + milliseconds(1));
  EXPECT_EQ(late.due(), opened + milliseconds(400 + 50 + 100));
}

TEST_F(late_step_test, from_try_to_try_the_wait_doubles) {
  late.wait(true, opened + milliseconds(400));
  EXPECT_EQ(late.ask(opened + milliseconds(600)), 1U);
  EXPECT_EQ(late.due(), opened + milliseconds(600 + 2 * 150));
  EXPECT_EQ(late.ask(opened + milliseconds(900)), 2U);
  EXPECT_EQ(late.due(), opened + milliseconds(900 + 4 * 150));
  for (int i = 0; i < 20; ++i) late.ask(opened + milliseconds(900));
  EXPECT_EQ(late.due(), opened + milliseconds(900 + 64 * 150));
}

TEST_F(late_step_test, who_has_helped_asks_at_once_and_is_not_more_impatient_for_it) {
  late.wait(true, opened + milliseconds(400));
  late.ask(opened + milliseconds(600));
  late.helped();
  EXPECT_LE(late.due(), opened + milliseconds(600));
  EXPECT_EQ(late.ask(opened + milliseconds(700)), 1U);
  EXPECT_EQ(late.due(), opened + milliseconds(700 + 2 * 150));
}

TEST_F(late_step_test, who_has_helped_with_the_step_before_asks_no_sooner) {
  late.wait(true, opened + milliseconds(400));
  late.ask(opened + milliseconds(600));
  late.open({5}, opened + milliseconds(650));
  late.helped();
  late.wait(true, opened + milliseconds(850));
  EXPECT_EQ(late.due(), opened + milliseconds(850 + 50 + 50));
  EXPECT_EQ(late.ask(opened + milliseconds(950)), 1U);
}

TEST_F(late_step_test, a_step_that_was_late_is_not_usual_at_once) {
  late.open({5}, opened + seconds(100));
  late.wait(false, opened + seconds(100));
  EXPECT_EQ(late.due(), opened + seconds(100) + milliseconds(520 + 50 + 130));
}

TEST_F(late_step_test, steps_of_another_timeline_are_not_measured) {
  late.open({2}, opened + seconds(100));
  late.wait(false, opened + seconds(100));
  EXPECT_EQ(late.due(), opened + seconds(100) + milliseconds(400 + 50 + 100));
}

TEST(late_step, the_first_step_takes_its_time) {
  late_step late;
  const protocol::time_point now{std::chrono::hours(1)};
  late.open({0}, now);
  late.wait(false, now);
  EXPECT_EQ(late.due(), now + milliseconds(1250));
}

TEST(late_step, threads_and_messages_have_twenty_milliseconds) {
  late_step late;
  protocol::time_point now{std::chrono::hours(1)};
  late.open({0}, now);
  late.open({1}, now + milliseconds(1));
  late.wait(true, now + milliseconds(2));
  EXPECT_EQ(late.due(), now + milliseconds(22));
}

} // namespace
} // namespace dlrun::worker
