// An agent's core: roles that end or hang, restarts, and the end of the job.
#include "tests/actors/agent/agent_core_fixture.hpp"

namespace dlrun::agent {
namespace {

using namespace std::chrono_literals;

TEST_F(agent_core_test, restarts_a_dead_worker_with_a_spare_fence_without_asking_anybody) {
  start_all();
  exit(worker1);
  EXPECT_EQ(started.back(), worker1);
  EXPECT_EQ(running.at(worker1).incarnation, incarnation{2});
  ASSERT_EQ(exits_told.size(), 1U);
  EXPECT_TRUE(exits_told[0].replaced);
  EXPECT_EQ(exits_told[0].self.incarnation, incarnation{1});
  EXPECT_THAT(events, ::testing::ElementsAre("role-exited", "role-restarted"));
}

TEST_F(agent_core_test, tells_of_an_end_how_long_it_went_unnoticed) {
  start_all();
  beat(worker1);
  now += 40ms;
  exit(worker1);
  ASSERT_EQ(numbers.size(), 2U);
  EXPECT_EQ(numbers[0].after_us, 40'000U);
  EXPECT_EQ(numbers[0].after_us, exits_told.at(0).detected_us) << "as the report will say";
  EXPECT_EQ(numbers[1], protocol::event_numbers{});
}

TEST_F(agent_core_test, waits_for_a_grant_when_its_spare_fences_are_used_up) {
  start_all();
  exit(worker1);
  exit(worker1);
  EXPECT_FALSE(running.contains(worker1));
  grant(worker1, 2, 2); // 2 is used up already
  EXPECT_EQ(running.at(worker1).incarnation, incarnation{3});
}

TEST_F(agent_core_test, ends_the_job_with_the_reason_when_the_restart_budget_is_exceeded) {
  start_all();
  for (const auto& role : {worker0, worker1, shard}) grant(role, 3, 5);
  for (int i = 0; i < 3; ++i) exit(worker1);
  EXPECT_THAT(stopped, ::testing::ElementsAre(std::pair{worker0, false}))
      << "in reverse order, each when the one after is gone";
  ASSERT_EQ(stops_told.size(), 1U) << "the coordinator writes the report";
  EXPECT_EQ(stops_told[0].code, error_code::restart_budget_exceeded);
  for (const auto& role : {worker0, shard}) exit(role);
  EXPECT_EQ(stopped.back(), std::pair(shard, false)) << "while it does";
  follow(core.on_job_ended({protocol::job_outcome::failed, stops_told[0].reason, stops_told[0].code,
                            running.at(coordinator).incarnation},
                           now));
  EXPECT_EQ(stopped.back(), std::pair(coordinator, false));
  exit(coordinator);
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->outcome, protocol::job_outcome::failed);
  EXPECT_EQ(ended->code, error_code::restart_budget_exceeded);
  EXPECT_THAT(ended->reason, ::testing::HasSubstr("worker 1"));
}

TEST_F(agent_core_test, does_not_wait_for_ever_for_the_report_when_the_restart_budget_is_exceeded) {
  start_all();
  for (const auto& role : {worker0, worker1, shard}) grant(role, 3, 5);
  for (int i = 0; i < 3; ++i) exit(worker1);
  for (const auto& role : {worker0, shard}) exit(role);
  now += 3s;
  follow(core.on_tick(now));
  ASSERT_EQ(stopped.back().first, coordinator);
  exit(coordinator);
  ASSERT_TRUE(ended.has_value());
  EXPECT_THAT(ended->reason, ::testing::HasSubstr("worker 1"));
}

TEST_F(agent_core_test, a_host_that_is_lost_uses_one_restart_however_many_roles_it_ran) {
  start_all();
  for (const auto& role : {worker0, worker1}) grant(role, 3, 9);
  const auto lose_host = [&] {
    exit(worker0, {.cause = "is lost with host beta"});
    if (!core.ending()) exit(worker1, {.cause = "is lost with host beta", .is_one_of_several = true});
  };
  lose_host();
  lose_host();
  EXPECT_TRUE(running.contains(worker0) && running.contains(worker1));
  EXPECT_FALSE(core.ending());
  lose_host();
  EXPECT_TRUE(core.ending() || !stopped.empty()) << "two restarts are allowed, not three";
}

TEST_F(agent_core_test, pauses_longer_and_longer_before_the_restart_of_who_ends_without_a_sign_of_life) {
  start_all();
  grant(worker1, 3, 5);
  gives_signs = false;
  exit(worker1); // it had given one
  ASSERT_TRUE(running.contains(worker1));
  events.clear();
  exit(worker1);
  EXPECT_THAT(events, ::testing::ElementsAre("role-exited"));
  now += 100ms;
  follow(core.on_tick(now));
  EXPECT_THAT(events, ::testing::ElementsAre("role-exited", "role-restarted"));
  ASSERT_TRUE(running.contains(worker1));
  exit(worker1);
  EXPECT_TRUE(core.ending() || !stopped.empty()) << "the third restart is one too many, pauses or not";
}

TEST_F(agent_core_test, ends_the_job_at_once_with_the_reason_when_no_further_start_can_succeed) {
  start_all();
  grant(worker1, 3, 5);
  started.clear();
  start_failure = error{error_code::bad_usage, "cannot start the program 'x': No such file or directory"};
  exit(worker1);
  EXPECT_EQ(started.size(), 1U) << "one try";
  ASSERT_EQ(stops_told.size(), 1U);
  EXPECT_EQ(stops_told[0].outcome, protocol::job_outcome::failed);
  EXPECT_EQ(stops_told[0].reason,
            "worker 1 cannot be started: cannot start the program 'x': No such file or directory");
  now += 2s;
  follow(core.on_tick(now));
  EXPECT_EQ(started.size(), 1U) << "also while the coordinator writes the report";
  EXPECT_EQ(std::count(events.begin(), events.end(), "role-start-failed"), 1);
}

TEST_F(agent_core_test, tells_once_which_gpu_is_avoided_and_shows_it_from_then_on) {
  start_all();
  const avoided_gpu third{3, "beta", "it failed"};
  exit(worker1, {.cause = "exited with code 1", .avoided = third});
  EXPECT_THAT(events, ::testing::ElementsAre("role-exited", "gpu-avoided", "role-restarted"));
  EXPECT_EQ(numbers.at(1).values, (std::vector{protocol::named_number("gpu", 3)}));
  exit(worker1);
  EXPECT_EQ(std::ranges::count(events, "gpu-avoided"), 1);
  EXPECT_THAT(core.book().avoided_gpus(), ::testing::ElementsAre(third));
}

TEST_F(agent_core_test, ends_the_job_at_once_when_a_role_ends_as_it_would_again) {
  gives_signs = false;
  start_all();
  const role_end missing{"exited with code 127", true};
  exit(worker1, missing);
  ASSERT_EQ(stops_told.size(), 1U);
  EXPECT_THAT(stops_told[0].reason,
              ::testing::StartsWith("worker 1 exited with code 127; it gave no sign of life before"));
  EXPECT_FALSE(running.contains(worker1));
}

TEST_F(agent_core_test, a_coordinator_that_can_never_start_ends_the_job_with_that_reason) {
  start_failure = error{error_code::bad_usage, "cannot start the program 'x': Permission denied"};
  follow(core.start(now));
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->reason,
            "coordinator 0 cannot be started: cannot start the program 'x': Permission denied");
}

TEST_F(agent_core_test, a_coordinator_that_ends_by_itself_before_it_was_there_ends_the_job) {
  follow(core.start(now));
  exit(coordinator, {.cause = "exited with code 1: the journal is damaged", .exited = true});
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->reason,
            "child 'coordinator 0' could not be started: it ended before it was up: exited with "
            "code 1: the journal is damaged");
}

TEST_F(agent_core_test, the_same_end_of_a_role_that_had_given_signs_of_life_is_like_any_other) {
  start_all();
  exit(worker1, {"exited with code 2", true});
  EXPECT_TRUE(running.contains(worker1));
  EXPECT_FALSE(core.ending());
}

TEST_F(agent_core_test, ends_the_job_when_a_ps_shard_dies_and_lets_the_coordinator_write_the_report) {
  start_all();
  exit(shard);
  ASSERT_EQ(stops_told.size(), 1U);
  EXPECT_THAT(stops_told[0].reason, ::testing::HasSubstr("ps_shard 0"));
  EXPECT_TRUE(stopped.empty()) << "nobody is stopped before the report is written";
  follow(core.on_job_ended(
      {.outcome = protocol::job_outcome::failed, .reason = "because", .coordinator = {1}}, now));
  EXPECT_THAT(stopped, ::testing::ElementsAre(std::pair{worker1, false}));
}

TEST_F(agent_core_test, stops_all_the_same_when_the_coordinator_writes_no_report) {
  start_all();
  follow(core.on_stop({protocol::job_outcome::interrupted, "Ctrl-C"}, now));
  now += 4s;
  follow(core.on_tick(now));
  for (const auto& role : {worker1, worker0, shard, coordinator}) {
    ASSERT_FALSE(stopped.empty());
    EXPECT_EQ(stopped.back().first, role);
    exit(role);
  }
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->outcome, protocol::job_outcome::interrupted);
  EXPECT_EQ(ended->reason, "Ctrl-C");
}

TEST_F(agent_core_test, stops_at_once_where_there_is_no_place_for_a_report) {
  start_all();
  follow(core.on_stop({protocol::job_outcome::failed, "the folder is gone", error_code::system, true}, now));
  EXPECT_TRUE(stops_told.empty()) << "the coordinator would write one";
  EXPECT_THAT(stopped, ::testing::ElementsAre(std::pair{worker1, false}));
  for (const auto& role : {worker1, worker0, shard, coordinator}) exit(role);
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->reason, "the folder is gone");
}

TEST_F(agent_core_test, waits_no_longer_for_a_report_once_there_is_no_place_for_it) {
  start_all();
  follow(core.on_stop({protocol::job_outcome::interrupted, "Ctrl-C"}, now));
  EXPECT_TRUE(stopped.empty());
  follow(core.on_stop({protocol::job_outcome::failed, "the folder is gone", error_code::system, true}, now));
  EXPECT_THAT(stopped, ::testing::ElementsAre(std::pair{worker1, false}));
}

TEST_F(agent_core_test, a_job_that_is_complete_is_so_for_who_asked_to_stop_it_meanwhile) {
  start_all();
  follow(core.on_stop({protocol::job_outcome::interrupted, "Ctrl-C"}, now));
  follow(core.on_job_ended({.outcome = protocol::job_outcome::completed, .reason = "", .coordinator = {1}},
                           now));
  for (const auto& role : {worker1, worker0, shard, coordinator}) exit(role);
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->outcome, protocol::job_outcome::completed);
}

TEST_F(agent_core_test, kills_what_does_not_end_when_asked) {
  start_all();
  follow(core.on_job_ended({.outcome = protocol::job_outcome::completed, .reason = "", .coordinator = {1}},
                           now));
  now += 3s;
  follow(core.on_tick(now));
  EXPECT_THAT(stopped, ::testing::ElementsAre(std::pair{worker1, false}, std::pair{worker1, true}));
}

TEST_F(agent_core_test, ends_the_job_when_the_coordinator_dies) {
  start_all();
  exit(coordinator);
  EXPECT_THAT(stopped, ::testing::ElementsAre(std::pair{worker1, false}))
      << "there is nobody to write a report";
}

TEST_F(agent_core_test, kills_a_role_that_gives_no_sign_of_life) {
  start_all();
  for (int second = 0; second <= 10; ++second, now += 1s) {
    for (const auto& role : {coordinator, shard, worker0}) beat(role);
    if (second == 0) beat(worker1);
    follow(core.on_tick(now));
  }
  EXPECT_THAT(stopped, ::testing::ElementsAre(std::pair{worker1, true}));
  EXPECT_THAT(events, ::testing::ElementsAre("role-hung"));
}

TEST_F(agent_core_test, holds_nobody_silent_for_the_time_it_was_stopped_itself) {
  start_all();
  for (const auto& role : {coordinator, shard, worker0, worker1}) beat(role);
  follow(core.on_tick(now));
  now += 60s; // SIGSTOP, SIGCONT
  follow(core.on_tick(now));
  EXPECT_TRUE(stopped.empty());
}

} // namespace
} // namespace dlrun::agent
