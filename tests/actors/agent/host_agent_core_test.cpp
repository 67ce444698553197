#include "actors/agent/host_agent_core.hpp"

#include "tests/actors/only.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::agent {
namespace {

using namespace std::chrono_literals;
using protocol::fence;
using protocol::role_kind;
using protocol::role_name;
using protocol::start_state;
using testing::IsEmpty;

constexpr role_name the_worker{role_kind::worker, 3};

class host_agent_core_test : public testing::Test {
protected:
  host_agent_core_test() { core.on_link(now); }

  static protocol::start_order order(const fence& self, std::uint64_t boot = 7) {
    return {boot, the_worker, self, {1}, {}, {}};
  }
  protocol::start_report only_report(const host_agent_actions& actions) {
    return test::the_only<tell_agent>(actions).report;
  }
  void run(const fence& self) {
    core.on_start_order(order(self), now);
    core.on_started(the_worker, self, 100, now);
  }

  protocol::time_point now{1h};
  host_agent_core core{{.host = "beta", .boot = 7, .orphan_grace = 10s, .repeat_after = 500ms}, now};
};

TEST_F(host_agent_core_test, starts_a_role_once_however_often_it_is_ordered) {
  const auto launch = test::the_only<launch_role>(core.on_start_order(order({{1}, 11}), now));
  EXPECT_EQ(launch.order.role, the_worker);
  EXPECT_THAT(core.on_start_order(order({{1}, 11}), now), IsEmpty()); // it does not know yet
  EXPECT_EQ(only_report(core.on_started(the_worker, {{1}, 11}, 100, now)).pid, 100);
  const auto again = only_report(core.on_start_order(order({{1}, 11}), now));
  EXPECT_EQ(again.state, start_state::running);
  EXPECT_EQ(again.host, "beta");
}

TEST_F(host_agent_core_test, ignores_orders_that_are_for_another_boot) {
  EXPECT_THAT(core.on_start_order(order({{1}, 11}, 6), now), IsEmpty());
  run({{1}, 11});
  EXPECT_THAT(core.on_stop_order({6, the_worker, {{1}, 11}, protocol::stop_how::kill}), IsEmpty());
  EXPECT_THAT(core.on_dismissal({6, "over"}), IsEmpty());
}

TEST_F(host_agent_core_test, makes_no_start_that_is_older_than_the_newest_of_the_role) {
  run({{2}, 22});
  EXPECT_THAT(core.on_start_order(order({{1}, 11}), now), IsEmpty());
}

TEST_F(host_agent_core_test, does_not_start_again_what_has_ended_and_is_known_to_have) {
  run({{1}, 11});
  core.on_exited(the_worker, {{1}, 11}, {.cause = "exited"}, now);
  core.on_start_told({7, the_worker, {{1}, 11}});
  EXPECT_THAT(core.on_start_order(order({{1}, 11}), now), IsEmpty());
}

TEST_F(host_agent_core_test, repeats_an_end_until_it_is_known) {
  run({{1}, 11});
  role_end how{.cause = "killed by signal 9 (KILL)", .is_lasting = false};
  how.slot = protocol::slot_progress{};
  const auto told = only_report(core.on_exited(the_worker, {{1}, 11}, how, now));
  EXPECT_EQ(told.state, start_state::ended);
  EXPECT_EQ(told.why, how.cause);
  EXPECT_TRUE(told.has_slot);
  EXPECT_FALSE(told.was_killed_in);
  EXPECT_THAT(core.on_tick(now + 499ms), IsEmpty());
  EXPECT_EQ(only_report(core.on_tick(now + 500ms)).state, start_state::ended);
  EXPECT_THAT(core.on_tick(now + 600ms), IsEmpty());
  core.on_start_told({7, the_worker, {{1}, 11}});
  EXPECT_THAT(core.on_tick(now + 5s), IsEmpty());
}

TEST_F(host_agent_core_test, tells_which_gpu_it_avoids_from_now_on) {
  run({{1}, 11});
  const auto told = only_report(core.on_exited(
      the_worker, {{1}, 11}, {.cause = "exited", .avoided = avoided_gpu{3, "beta", "it failed"}}, now));
  EXPECT_TRUE(told.has_avoided);
  EXPECT_EQ(told.avoided, 3U);
  EXPECT_EQ(told.why_avoided, "it failed");
  run({{2}, 12});
  EXPECT_FALSE(only_report(core.on_exited(the_worker, {{2}, 12}, {.cause = "exited"}, now)).has_avoided);
}

TEST_F(host_agent_core_test, tells_why_a_start_failed) {
  core.on_start_order(order({{1}, 11}), now);
  const auto told = only_report(
      core.on_start_failed(the_worker, {{1}, 11}, {error_code::bad_usage, "no such program"}, now));
  EXPECT_EQ(told.state, start_state::not_started);
  EXPECT_EQ(told.code, error_code::bad_usage);
  EXPECT_EQ(told.why, "no such program");
}

TEST_F(host_agent_core_test, cuts_a_reason_that_no_message_has_room_for) {
  run({{1}, 11});
  const auto told =
      only_report(core.on_exited(the_worker, {{1}, 11}, {.cause = std::string(100'000, 'x')}, now));
  EXPECT_EQ(told.why.size(), protocol::report_reason_bytes_max);
}

TEST_F(host_agent_core_test, ends_a_start_that_runs_and_no_other) {
  run({{1}, 11});
  EXPECT_THAT(core.on_stop_order({7, the_worker, {{2}, 22}, protocol::stop_how::kill}), IsEmpty());
  const auto end =
      test::the_only<end_role>(core.on_stop_order({7, the_worker, {{1}, 11}, protocol::stop_how::kill}));
  EXPECT_TRUE(end.how == protocol::stop_how::kill);
  core.on_exited(the_worker, {{1}, 11}, {.cause = "exited"}, now);
  EXPECT_THAT(core.on_stop_order({7, the_worker, {{1}, 11}, protocol::stop_how::kill}), IsEmpty());
}

TEST_F(host_agent_core_test, keeps_its_roles_through_a_short_cut_and_tells_all_afterwards) {
  run({{1}, 11});
  core.on_link_lost(now);
  EXPECT_THAT(core.on_tick(now + 9s), IsEmpty());
  EXPECT_THAT(core.on_exited(the_worker, {{1}, 11}, {.cause = "exited"}, now + 9s),
              IsEmpty()); // nobody hears
  EXPECT_EQ(only_report(core.on_link(now + 9500ms)).state, start_state::ended);
  EXPECT_THAT(core.on_tick(now + 9600ms), IsEmpty());
}

TEST_F(host_agent_core_test, leaves_when_it_is_cut_off_for_longer_than_the_grace) {
  run({{1}, 11});
  core.on_link_lost(now);
  core.on_link_lost(now + 5s); // once is enough
  test::the_only<leave>(core.on_tick(now + 10s));
  EXPECT_THAT(core.on_tick(now + 11s), IsEmpty());
  EXPECT_THAT(core.on_start_order(order({{2}, 22}), now + 11s), IsEmpty());
}

TEST_F(host_agent_core_test, leaves_when_it_has_no_link_from_the_start) {
  host_agent_core alone{{.host = "beta", .boot = 7, .orphan_grace = 10s}, now};
  EXPECT_THAT(alone.on_tick(now + 9s), IsEmpty());
  test::the_only<leave>(alone.on_tick(now + 10s));
}

TEST_F(host_agent_core_test, leaves_when_the_root_answers_no_beat_for_longer_than_the_grace) {
  run({{1}, 11});
  core.on_sighting({sight::there, 0ms}, now);
  core.on_sighting({sight::silent, 800ms}, now);
  EXPECT_TRUE(core.has_link());
  EXPECT_THAT(core.on_tick(now + 9s), IsEmpty());
  core.on_sighting({sight::there, 0ms}, now + 9s);
  EXPECT_THAT(core.on_tick(now + 30s), IsEmpty());
  core.on_sighting({sight::hangs, 0ms}, now + 30s);
  core.on_sighting({sight::silent, 800ms}, now + 35s); // the same silence
  EXPECT_THAT(test::the_only<leave>(core.on_tick(now + 40s)).reason, testing::HasSubstr("no beat for 10 s"));
}

TEST_F(host_agent_core_test, hears_nothing_of_the_root_in_beats_that_never_passed) {
  core.on_sighting({sight::unproven, 0ms}, now);
  EXPECT_THAT(core.on_tick(now + 1h), IsEmpty());
}

TEST_F(host_agent_core_test, leaves_when_it_is_dismissed) {
  EXPECT_EQ(test::the_only<leave>(core.on_dismissal({7, "the job is over"})).reason, "the job is over");
}

TEST_F(host_agent_core_test, lets_its_workers_take_turns_where_a_message_has_no_room_for_all) {
  std::vector<seen_work> many(protocol::reported_workers_max + 1);
  for (std::uint32_t i = 0; i < many.size(); ++i) many[i].role.index = i;
  const auto first = core.work_report(many);
  ASSERT_EQ(first.workers.size(), protocol::reported_workers_max);
  EXPECT_EQ(first.workers.front().role.index, 0U);
  EXPECT_EQ(core.work_report(many).workers.front().role.index, protocol::reported_workers_max);
  EXPECT_EQ(core.work_report({}).workers.size(), 0U);
}

TEST_F(host_agent_core_test, tells_memory_of_its_host_with_each_sign_of_life) {
  const auto told = core.work_report({}, {.used = 3, .limit = 4});
  EXPECT_EQ(std::pair(told.memory_used, told.memory_limit), std::pair(std::uint64_t{3}, std::uint64_t{4}));
}

TEST_F(host_agent_core_test, tells_another_root_what_it_runs_and_nothing_else) {
  run({{1}, 11});
  core.on_start_order({7, {role_kind::worker, 4}, {{1}, 44}, {1}, {}, {}}, now); // has not started yet
  core.on_start_order({7, {role_kind::worker, 5}, {{1}, 55}, {1}, {}, {}}, now);
  core.on_started({role_kind::worker, 5}, {{1}, 55}, 101, now);
  core.on_exited({role_kind::worker, 5}, {{1}, 55}, {.cause = "exited"}, now);
  EXPECT_THAT(core.running(), testing::ElementsAre(protocol::running_start{the_worker, {{1}, 11}, 100}));
}

TEST_F(host_agent_core_test, says_that_it_is_to_leave_until_it_is_let_go) {
  run({{1}, 11});
  EXPECT_FALSE(core.is_leaving());
  EXPECT_THAT(core.on_notice(now), IsEmpty());
  EXPECT_TRUE(core.is_leaving());
  EXPECT_THAT(core.on_tick(now + 1s), IsEmpty());
  EXPECT_EQ(test::the_only<leave>(core.on_dismissal({7, "it was asked to leave"})).kind, leave_kind::for_now);
}

TEST_F(host_agent_core_test, tells_each_root_that_it_links_to_that_it_is_to_leave) {
  EXPECT_FALSE(core.has_leave_to_tell());
  core.on_notice(now);
  EXPECT_TRUE(core.has_leave_to_tell());
  core.on_link(now, 4, true);
  EXPECT_FALSE(core.has_leave_to_tell()) << "it knows";
  core.on_link_lost(now);
  EXPECT_FALSE(core.has_leave_to_tell()) << "nobody is there";
  core.on_link(now, 5);
  EXPECT_TRUE(core.has_leave_to_tell());
}

TEST_F(host_agent_core_test, leaves_at_once_when_it_is_asked_twice_or_has_no_link) {
  core.on_notice(now);
  EXPECT_EQ(test::the_only<leave>(core.on_notice(now + 1s)).kind, leave_kind::for_now);
  host_agent_core alone{{.host = "beta", .boot = 7}, now};
  EXPECT_EQ(test::the_only<leave>(alone.on_notice(now)).kind, leave_kind::for_now);
}

TEST_F(host_agent_core_test, leaves_when_nobody_lets_it_go_within_the_grace) {
  core.on_notice(now);
  EXPECT_THAT(core.on_tick(now + 29s), IsEmpty());
  EXPECT_EQ(test::the_only<leave>(core.on_tick(now + 30s)).kind, leave_kind::for_now);
}

TEST_F(host_agent_core_test, a_job_that_goes_on_without_it_is_a_failure_and_one_that_is_over_is_none) {
  EXPECT_EQ(test::the_only<leave>(core.on_dismissal({7, "the job is over"})).kind, leave_kind::for_good);
  host_agent_core stopped{{.host = "beta", .boot = 7}, now};
  EXPECT_EQ(test::the_only<leave>(stopped.on_dismissal({7, "the job was stopped, and may go on"})).kind,
            leave_kind::for_now);
  host_agent_core lost{{.host = "beta", .boot = 7}, now};
  EXPECT_EQ(
      test::the_only<leave>(lost.on_dismissal({7, std::string{given_up} + ": it answers no beat"})).kind,
      leave_kind::lost);
  host_agent_core alone{{.host = "beta", .boot = 7, .orphan_grace = 10s}, now};
  EXPECT_EQ(test::the_only<leave>(alone.on_tick(now + 10s)).kind, leave_kind::lost);
}

TEST_F(host_agent_core_test, orders_of_a_root_that_is_gone_have_no_effect_and_of_the_next_all_count) {
  auto by_root = [](const fence& self, std::uint64_t root) {
    auto made = order(self);
    made.agent = root;
    return made;
  };
  core.on_link(now, 4);
  test::the_only<launch_role>(core.on_start_order(by_root({{2}, 22}, 4), now));
  core.on_started(the_worker, {{2}, 22}, 100, now);
  core.on_exited(the_worker, {{2}, 22}, {.cause = "exited"}, now);
  core.on_link_lost(now);
  core.on_link(now, 5);
  EXPECT_THAT(core.on_start_order(by_root({{3}, 33}, 4), now), IsEmpty());
  const auto launch = test::the_only<launch_role>(core.on_start_order(by_root({{2}, 44}, 5), now));
  EXPECT_EQ(launch.order.self.token, 44U) << "it issues numbers of its own";
}

} // namespace
} // namespace dlrun::agent
