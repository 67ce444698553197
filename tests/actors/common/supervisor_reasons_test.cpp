// What people read: reasons, and the errors of wrong specs. And supervisors of supervisors.
#include "tests/actors/common/supervisor_script.hpp"

#include <gmock/gmock.h>

namespace dlrun::supervision::testing {
namespace {

using ::testing::HasSubstr;

std::string reason(const player& play) { return reason_of(play.last().back()); }

TEST(supervisor_reasons, a_restart_says_who_ended_how_and_what_is_left) {
  player play("2/5000", "worker-0");
  play.bring_all_up();
  play.play("worker-0 fails");
  EXPECT_EQ(reason(play), "restart 1 of at most 2 within 5000 ms: 'worker-0' ended: killed by signal 9");
}

TEST(supervisor_reasons, giving_up_says_the_limit_and_the_last_failure) {
  player play("0/5000", "worker-0");
  play.bring_all_up();
  ASSERT_EQ(play.play("worker-0 fails"), "escalate");
  EXPECT_EQ(reason(play),
            "more than 0 restarts within 5000 ms; the last: child 'worker-0' ended: killed by signal 9");
}

TEST(supervisor_reasons, a_failed_first_start_is_the_reason_of_the_end) {
  player play("", "ps-0");
  play.play("start");
  ASSERT_EQ(play.play("ps-0 nostart"), "escalate");
  EXPECT_EQ(reason(play), "child 'ps-0' could not be started: no such program");
}

TEST(supervisor_reasons, a_kill_says_what_was_waited_for) {
  player play("", "ps-0:timeout=250");
  play.bring_all_up();
  play.play("shutdown");
  ASSERT_EQ(play.play("+250"), "kill ps-0#1");
  EXPECT_EQ(reason(play), "it did not stop within 250 ms");
}

TEST(supervisor_spec, all_faults_are_named_at_once) {
  supervisor_options options;
  options.period = milliseconds{0};
  options.delay = {milliseconds{5}, milliseconds{1}};
  const auto made = supervisor::create(options, children_of("a a"));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, error_code::bad_usage);
  for (const auto* fault : {"the period", "the restart delay", "two children are called 'a'"})
    EXPECT_THAT(made.error().message, HasSubstr(fault));
}

TEST(supervisor_spec, defaults_are_those_of_otp) {
  const supervisor_options options;
  EXPECT_EQ(options.intensity, 1U);
  EXPECT_EQ(options.period, milliseconds{5000});
  EXPECT_EQ(child_spec{}.restart, restart_type::permanent);
  EXPECT_EQ(child_spec{}.shutdown.patience, milliseconds{5000});
}

TEST(nested_supervisors, failures_that_go_on_reach_the_top) {
  player outer("1/5000", "inner");
  outer.bring_all_up();
  std::string outcome;
  for (int round = 0; round < 2; ++round) {
    player inner("0/5000", "x");
    inner.bring_all_up();
    ASSERT_EQ(inner.play("x fails"), "escalate");
    outcome = outer.play("inner fails");
    if (round == 0) outer.play("inner up");
  }
  EXPECT_EQ(outcome, "escalate");
}

TEST(nested_supervisors, shutdown_runs_from_the_top_down_and_ends_from_the_bottom_up) {
  player outer("", "a inner:transient");
  player inner("", "x");
  outer.bring_all_up();
  inner.bring_all_up();
  ASSERT_EQ(outer.play("shutdown"), "terminate inner#1");
  ASSERT_EQ(inner.play("shutdown"), "terminate x#1");
  ASSERT_EQ(inner.play("x ends"), "stopped");
  ASSERT_EQ(outer.play("inner ends"), "terminate a#1");
  ASSERT_EQ(outer.play("a ends"), "stopped");
}

} // namespace
} // namespace dlrun::supervision::testing
