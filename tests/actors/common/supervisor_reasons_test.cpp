// What people read: reasons, and the errors of wrong specs.
#include "tests/actors/common/supervisor_script.hpp"

#include <gmock/gmock.h>

namespace dlrun::supervision::testing {
namespace {

using ::testing::HasSubstr;

/// Of the last action.
template <class Action>
std::string reason(const player& play) {
  return std::get<Action>(play.last().back()).reason;
}

TEST(supervisor_reasons, a_restart_says_who_ended_how_and_what_is_left) {
  player play("2/5000", "worker-0");
  play.bring_all_up();
  play.play("worker-0 ends");
  EXPECT_EQ(reason<start_child>(play),
            "restart 1 of at most 2 within 5000 ms: 'worker-0' ended: killed by signal 9");
}

TEST(supervisor_reasons, giving_up_says_the_limit_and_the_last_failure) {
  player play("0/5000", "worker-0");
  play.bring_all_up();
  ASSERT_EQ(play.play("worker-0 ends"), "escalate");
  EXPECT_EQ(reason<escalate>(play),
            "more than 0 restarts within 5000 ms; the last: child 'worker-0' ended: killed by signal 9");
}

TEST(supervisor_reasons, a_failed_first_start_is_the_reason_of_the_end) {
  player play("", "ps-0");
  play.play("start");
  ASSERT_EQ(play.play("ps-0 nostart"), "escalate");
  EXPECT_EQ(reason<escalate>(play), "child 'ps-0' could not be started: no such program");
}

TEST(supervisor_spec, all_faults_are_named_at_once) {
  supervisor_options options;
  options.period = milliseconds{0};
  options.delay = {milliseconds{5}, milliseconds{1}};
  const auto made = supervisor::create(options, children_of("a a b:timeout=-1"));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, error_code::bad_usage);
  for (const auto* fault : {"the period", "the restart delay", "two children are called 'a'",
                            "child 'b': its patience is negative"})
    EXPECT_THAT(made.error().message, HasSubstr(fault));
}

TEST(supervisor_spec, defaults_are_those_of_otp) {
  const supervisor_options options;
  EXPECT_EQ(options.intensity, 1U);
  EXPECT_EQ(options.period, milliseconds{5000});
  EXPECT_EQ(child_spec{}.restart, restart_type::permanent);
  EXPECT_EQ(child_spec{}.patience, milliseconds{5000});
}

} // namespace
} // namespace dlrun::supervision::testing
