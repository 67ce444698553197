// An agent's core: how many workers there are (R32, R33).
#include "tests/actors/agent/agent_core_fixture.hpp"

namespace dlrun::agent {
namespace {

using std::chrono::milliseconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct agent_core_scale_test : agent_core_test {
  agent_core_scale_test()
      : agent_core_test(true) {}

  static constexpr role_name worker2{role_kind::worker, 2};
  static constexpr role_name worker3{role_kind::worker, 3};

  result<std::uint64_t> ask(std::uint32_t workers) {
    agent_actions actions;
    auto request = core.on_scale_request(workers, actions);
    follow(actions);
    return request;
  }
  void hear(std::uint64_t request, std::uint32_t workers, std::uint64_t agent = 9) {
    follow(core.on_workers_wanted({agent, request, workers}, now));
  }
  void pass(milliseconds time) {
    now += time;
    follow(core.on_tick(now));
  }
};

TEST_F(agent_core_scale_test, nothing_starts_before_the_coordinator_says_that_the_number_is_journaled) {
  start_all();
  started.clear();
  EXPECT_EQ(ask(4), 1U);
  EXPECT_THAT(scales_told, SizeIs(1));
  EXPECT_EQ(scales_told[0].workers, 4U);
  grant(worker2, 1);
  EXPECT_THAT(started, IsEmpty());
  hear(1, 4);
  for (const auto& role : {worker2, worker3}) grant(role, 1);
  EXPECT_THAT(started, ElementsAre(worker2, worker3));
  const auto scaled = std::find(events.begin(), events.end(), "workers-scaled");
  ASSERT_NE(scaled, events.end());
  EXPECT_THAT(numbers.at(static_cast<std::size_t>(scaled - events.begin())).values,
              ElementsAre(protocol::named_number("workers", 4)));
  EXPECT_EQ(core.book().workers().wanted, 4U);
}

TEST_F(agent_core_scale_test, a_request_is_repeated_until_the_coordinator_that_is_up_has_it) {
  start_all();
  ask(3);
  pass(milliseconds(100));
  EXPECT_THAT(scales_told, SizeIs(2));
  hear(1, 3);
  pass(milliseconds(100));
  EXPECT_THAT(scales_told, SizeIs(2));
}

TEST_F(agent_core_scale_test, a_number_out_of_bounds_is_refused_with_the_way_out) {
  start_all();
  EXPECT_THAT(ask(0).error().message, HasSubstr("cluster.workers_min"));
  EXPECT_THAT(ask(5).error().message, HasSubstr("cluster.workers_max"));
  EXPECT_EQ(ask(5).error().code, error_code::bad_usage);
  EXPECT_THAT(scales_told, IsEmpty());
}

TEST_F(agent_core_scale_test, words_for_another_root_and_of_an_older_request_are_ignored) {
  start_all();
  ask(3);
  ask(4);
  hear(2, 4);
  hear(1, 3);
  hear(3, 2, 8);
  EXPECT_EQ(core.book().workers().wanted, 4U);
  EXPECT_THAT(asked_to_leave, IsEmpty());
}

TEST_F(agent_core_scale_test, who_is_too_many_is_asked_to_leave_and_is_not_started_again) {
  start_all();
  for (const auto& role : {worker0, worker1}) beat(role);
  ask(1);
  hear(1, 1);
  EXPECT_THAT(asked_to_leave, ElementsAre(worker1));
  EXPECT_EQ(core.book().workers().present, 1U);
  EXPECT_EQ(core.book().workers().leaving, 1U);
  started.clear();
  exit(worker1, {.cause = "ended with exit code 143", .left = true});
  EXPECT_THAT(started, IsEmpty());
  ASSERT_THAT(exits_told, SizeIs(1));
  EXPECT_TRUE(exits_told[0].left);
  EXPECT_FALSE(exits_told[0].replaced);
  EXPECT_EQ(events.back(), "worker-left");
  EXPECT_EQ(core.book().workers().leaving, 0U);
  for (const auto& role : core.book().views()) EXPECT_NE(role.role, worker1) << "it is shown no more";
}

TEST_F(agent_core_scale_test, who_does_not_leave_within_the_grace_is_killed) {
  start_all();
  ask(1);
  hear(1, 1);
  pass(milliseconds(4900));
  EXPECT_THAT(stopped, IsEmpty());
  pass(milliseconds(100));
  EXPECT_THAT(stopped, ElementsAre(std::pair{worker1, true}));
}

TEST_F(agent_core_scale_test, a_worker_that_comes_back_gets_a_fence_that_was_never_used) {
  start_all();
  ask(1);
  hear(1, 1);
  const auto before = running.at(worker1);
  exit(worker1, {.cause = "ended with exit code 143", .left = true});
  ask(2);
  hear(2, 2);
  EXPECT_GT(running.at(worker1).incarnation, before.incarnation);
}

TEST_F(agent_core_scale_test, a_worker_that_is_wanted_again_while_it_leaves_starts_when_it_has_left) {
  start_all();
  ask(1);
  hear(1, 1);
  ask(2);
  started.clear();
  hear(2, 2);
  EXPECT_THAT(started, IsEmpty());
  exit(worker1, {.cause = "ended with exit code 143", .left = true});
  EXPECT_THAT(started, ElementsAre(worker1));
}

TEST_F(agent_core_scale_test, a_worker_that_somebody_else_asked_to_leave_is_replaced_and_uses_no_restart) {
  start_all(); // two restarts are allowed
  for (std::uint64_t i = 0; i < 5; ++i) {
    grant(worker0, 3 + 2 * i);
    exit(worker0, {.cause = "ended with exit code 143", .left = true});
  }
  EXPECT_FALSE(ended);
  EXPECT_FALSE(core.ending());
  EXPECT_EQ(std::count(events.begin(), events.end(), "worker-left"), 5);
  EXPECT_EQ(std::count(events.begin(), events.end(), "role-restarted"), 5);
  EXPECT_TRUE(exits_told.at(0).replaced);
}

TEST_F(agent_core_scale_test, a_worker_whose_host_kills_it_while_it_leaves_uses_no_restart) {
  start_all();
  core.on_heartbeat({.role = worker0, .self = running.at(worker0), .state = "leaving"}, now);
  exit(worker0);
  EXPECT_THAT(events, Contains("worker-left"));
  EXPECT_THAT(events, ::testing::Not(Contains("role-exited")));
}

TEST_F(agent_core_scale_test, who_is_leaving_when_the_job_ends_is_ended_at_once) {
  start_all();
  ask(1);
  hear(1, 1);
  follow(core.on_job_ended(
      {.outcome = protocol::job_outcome::completed, .reason = "done", .coordinator = {1}}, now));
  EXPECT_THAT(stopped, ElementsAre(std::pair{worker1, false}));
}

TEST_F(agent_core_scale_test, a_new_coordinator_without_the_number_is_told_it) {
  start_all();
  ask(1);
  hear(1, 1);
  exit(coordinator, {"killed by signal 9"});
  grant(coordinator, 2);
  scales_told.clear();
  pass(milliseconds(1000));
  follow(core.on_coordinator_joined(coordinator_process, now));
  hear(0, 2);
  EXPECT_EQ(core.book().workers().wanted, 1U);
  pass(milliseconds(100));
  EXPECT_THAT(scales_told, Contains(::testing::Field(&protocol::scale_job::workers, 1U)));
}

} // namespace
} // namespace dlrun::agent
