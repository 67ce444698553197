#include "actors/agent/agent_core.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::agent {
namespace {

using namespace std::chrono_literals;
using protocol::role_kind;
using protocol::role_name;

constexpr role_name coordinator{role_kind::coordinator, 0};
constexpr role_name shard{role_kind::ps_shard, 0};
constexpr role_name worker0{role_kind::worker, 0};
constexpr role_name worker1{role_kind::worker, 1};
constexpr protocol::fence coordinator_fence{{1}, 77};

protocol::join joining(const role_name& role, const protocol::fence& self) {
  return {role, self, 100, {}, {}};
}

/// An agent of one PS shard and two workers, and the shell that does what it says.
struct agent_core_test : ::testing::Test {
  explicit agent_core_test(bool durable = false)
      : core{{.workers = 2,
              .ps_shards = 1,
              .coordinator = coordinator_fence,
              .state_is_durable = durable,
              .restart_intensity = 2}} {}

  agent_core core;
  protocol::time_point now{1h};
  std::vector<role_name> started;
  std::vector<std::pair<role_name, bool>> stopped; ///< and whether it was a kill
  std::map<role_name, protocol::fence> running;
  std::vector<std::string> events;
  std::vector<protocol::event_numbers> numbers; ///< of each event
  std::vector<protocol::role_exited> exits_told;
  std::vector<protocol::stop_job> stops_told;
  std::vector<role_name> starts_told;
  std::optional<protocol::job_ended> ended;
  std::optional<error> start_failure; ///< of all starts to come
  bool gives_signs = true;            ///< who is started, at once

  void follow(const agent_actions& actions) {
    for (const auto& action : actions) std::visit([this](const auto& what) { follow_one(what); }, action);
  }
  void follow_one(const start_role& what) {
    started.push_back(what.role);
    if (start_failure) return follow(core.on_start_failed(what.role, what.self, *start_failure, now));
    running[what.role] = what.self;
    follow(core.on_started(what.role, what.self, 100, now));
    if (gives_signs) core.on_heartbeat({.role = what.role, .self = what.self, .state = "starting"}, now);
  }
  void follow_one(const stop_role& what) { stopped.emplace_back(what.role, what.kill); }
  void follow_one(const to_coordinator& what) {
    if (const auto* exited = std::get_if<protocol::role_exited>(&what)) exits_told.push_back(*exited);
    if (const auto* stop = std::get_if<protocol::stop_job>(&what)) stops_told.push_back(*stop);
    if (const auto* start = std::get_if<protocol::role_started>(&what)) starts_told.push_back(start->role);
  }
  void follow_one(const announce& what) {
    events.push_back(what.event.event);
    numbers.push_back(what.event.numbers);
  }
  void follow_one(const all_stopped& what) { ended = what.ended; }

  void grant(const role_name& role, std::uint64_t first, std::uint64_t count = 2) {
    protocol::grant message{role, {}};
    for (auto i = first; i < first + count; ++i) message.fences.push_back({{i}, i * 1000});
    follow(core.on_grant(message, now));
  }
  void start_all() {
    follow(core.start(now));
    follow(core.on_coordinator_joined(now));
    for (const auto& role : {shard, worker0, worker1}) grant(role, 1);
  }
  void exit(const role_name& role) { exit(role, {"killed by signal 9"}); }
  void exit(const role_name& role, const role_end& how) {
    const auto self = running.at(role);
    running.erase(role);
    follow(core.on_exited(role, self, how, now));
  }
  void beat(const role_name& role) {
    core.on_heartbeat(
        {.role = role, .self = running.at(role), .state = "training", .step = 5, .durable_step = 3}, now);
  }
};

TEST_F(agent_core_test, starts_the_coordinator_first_and_the_others_when_it_has_joined_and_granted_fences) {
  follow(core.start(now));
  EXPECT_THAT(started, ::testing::ElementsAre(coordinator));
  grant(worker0, 1);
  EXPECT_EQ(started.size(), 1U) << "the coordinator has not joined";
  follow(core.on_coordinator_joined(now));
  for (const auto& role : {shard, worker1}) grant(role, 1);
  EXPECT_THAT(started, ::testing::ElementsAre(coordinator, shard, worker0, worker1));
}

TEST_F(agent_core_test, accepts_only_the_coordinator_it_started) {
  follow(core.start(now));
  EXPECT_TRUE(core.accepts(joining(coordinator, coordinator_fence)));
  EXPECT_FALSE(core.accepts(joining(coordinator, {{1}, 78})));
  EXPECT_FALSE(core.accepts(joining(worker0, coordinator_fence)));
}

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

TEST_F(agent_core_test, metrics_belong_to_the_step_of_the_shard_that_tells_them) {
  start_all();
  EXPECT_FALSE(core.reports().metrics());
  core.on_heartbeat({.role = shard,
                     .self = running.at(shard),
                     .state = "training",
                     .step = 9,
                     .has_metrics = true,
                     .metrics = {.epoch = 2}},
                    now);
  ASSERT_TRUE(core.reports().metrics());
  EXPECT_EQ(core.reports().metrics()->epoch, 2U);
  EXPECT_EQ(core.reports().metrics_step(), 9U);
  beat(shard); // of step 5, without any
  EXPECT_EQ(core.reports().metrics_step(), 9U);
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
  for (const auto& role : {worker0, shard, coordinator}) exit(role);
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->outcome, protocol::job_outcome::failed);
  EXPECT_THAT(ended->reason, ::testing::HasSubstr("worker 1"));
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

TEST_F(agent_core_test, ends_the_job_at_once_when_a_role_ends_as_it_would_again) {
  gives_signs = false;
  start_all();
  const role_end missing{"exited with code 127", true};
  exit(worker1, missing);
  ASSERT_EQ(stops_told.size(), 1U);
  EXPECT_THAT(stops_told[0].reason, ::testing::StartsWith("worker 1 exited with code 127 before"));
  EXPECT_FALSE(running.contains(worker1));
}

TEST_F(agent_core_test, a_coordinator_that_can_never_start_ends_the_job_with_that_reason) {
  start_failure = error{error_code::bad_usage, "cannot start the program 'x': Permission denied"};
  follow(core.start(now));
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->reason,
            "coordinator 0 cannot be started: cannot start the program 'x': Permission denied");
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
  follow(core.on_job_ended({protocol::job_outcome::failed, "because"}, now));
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

TEST_F(agent_core_test, kills_what_does_not_end_when_asked) {
  start_all();
  follow(core.on_job_ended({protocol::job_outcome::completed, ""}, now));
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

TEST_F(agent_core_test, ignores_ends_and_heartbeats_of_older_starts) {
  start_all();
  const auto old = running.at(worker0);
  exit(worker0);
  follow(core.on_exited(worker0, old, {"late"}, now));
  core.on_heartbeat({.role = worker0, .self = old, .state = "zombie"}, now);
  EXPECT_EQ(exits_told.size(), 1U);
  for (const auto& role : core.roles()) {
    if (role.role == worker0) {
      EXPECT_EQ(role.state, "starting");
    }
  }
}

TEST_F(agent_core_test, shows_every_role_with_the_lowest_step_of_the_shards) {
  start_all();
  beat(shard);
  core.on_heartbeat({.role = {role_kind::data_dispatcher, 0}, .self = {{4}, 0}, .state = "dispatching"}, now);
  std::vector<std::string> names;
  for (const auto& role : core.roles()) names.push_back(protocol::to_string(role.role));
  EXPECT_THAT(names, ::testing::ElementsAre("coordinator 0", "data_dispatcher 0", "ps_shard 0", "worker 0",
                                            "worker 1"));
  EXPECT_EQ(core.reports().step(), 5U);
  EXPECT_EQ(core.reports().durable_step(), 3U);
}

// ---- with durable state

struct durable_agent_core_test : agent_core_test {
  durable_agent_core_test()
      : agent_core_test(true) {}
};

TEST_F(durable_agent_core_test, a_ps_shard_is_started_again_with_a_fence_granted_in_advance) {
  start_all();
  started.clear();
  exit(shard);
  EXPECT_THAT(started, ::testing::ElementsAre(shard));
  EXPECT_EQ(running.at(shard).incarnation.value, 2u);
  ASSERT_EQ(exits_told.size(), 1u);
  EXPECT_TRUE(exits_told.front().replaced);
  EXPECT_FALSE(core.ending());
}

TEST_F(durable_agent_core_test, the_coordinator_is_started_again_and_nobody_else) {
  start_all();
  grant(coordinator, 2);
  started.clear();
  exit(coordinator);
  EXPECT_THAT(started, ::testing::ElementsAre(coordinator));
  EXPECT_EQ(running.at(coordinator).incarnation.value, 2u);
  EXPECT_TRUE(stopped.empty());
  EXPECT_TRUE(core.accepts(joining(coordinator, running.at(coordinator))));
}

TEST_F(durable_agent_core_test, a_new_coordinator_hears_what_ended_meanwhile_and_what_runs) {
  start_all();
  grant(coordinator, 2);
  exit(coordinator);
  exit(worker0);
  EXPECT_TRUE(exits_told.empty()) << "there is nobody to tell";
  starts_told.clear();
  now += std::chrono::milliseconds(7);
  follow(core.on_coordinator_joined(now));
  ASSERT_EQ(exits_told.size(), 2u);
  EXPECT_EQ(exits_told[0].role, coordinator);
  EXPECT_EQ(exits_told[1].role, worker0);
  EXPECT_EQ(exits_told[1].age_us, 7000u);
  EXPECT_THAT(starts_told, ::testing::UnorderedElementsAre(shard, worker0, worker1));
}

TEST_F(durable_agent_core_test, a_new_coordinator_hears_again_of_what_the_one_before_was_told) {
  start_all();
  grant(coordinator, 2);
  exit(worker0);
  exit(coordinator);
  exits_told.clear();
  follow(core.on_coordinator_joined(now));
  ASSERT_EQ(exits_told.size(), 2u);
  EXPECT_EQ(exits_told[0].role, worker0);
  EXPECT_TRUE(exits_told[0].again) << "it may have died before that was in its journal";
  EXPECT_EQ(exits_told[1].role, coordinator);
  EXPECT_FALSE(exits_told[1].again);
  grant(coordinator, 3);
  exit(coordinator);
  exits_told.clear();
  follow(core.on_coordinator_joined(now));
  ASSERT_EQ(exits_told.size(), 3u);
  EXPECT_TRUE(exits_told[1].again);
  EXPECT_FALSE(exits_told[2].again);
}

TEST_F(durable_agent_core_test, the_coordinator_hears_of_a_start_that_failed_and_issues_another_fence) {
  start_all();
  start_failure = error{error_code::system, "there is no memory"};
  exit(worker1);
  ASSERT_EQ(exits_told.size(), 2u);
  EXPECT_EQ(exits_told[1].self.incarnation, incarnation{2});
  EXPECT_EQ(exits_told[1].cause, "could not be started: there is no memory");
  start_failure.reset();
  grant(worker1, 3);
  EXPECT_FALSE(running.contains(worker1)) << "the pause before another try is not over";
  now += 100ms;
  follow(core.on_tick(now));
  EXPECT_EQ(running.at(worker1).incarnation, incarnation{3});
}

TEST_F(durable_agent_core_test, a_coordinator_that_is_out_of_fences_ends_the_job_after_a_moment) {
  start_all();
  exit(coordinator);
  follow(core.on_tick(now));
  EXPECT_FALSE(core.ending()) << "a grant may be on its way";
  now += 3s;
  for (const auto& role : {shard, worker0, worker1}) beat(role);
  follow(core.on_tick(now));
  EXPECT_TRUE(core.ending());
  for (const auto& role : {worker1, worker0, shard}) exit(role);
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->outcome, protocol::job_outcome::failed);
  EXPECT_THAT(ended->reason, ::testing::HasSubstr("killed by signal 9"));
  EXPECT_THAT(ended->reason, ::testing::HasSubstr("dlrun resume"));
}

TEST_F(durable_agent_core_test, a_coordinator_whose_fence_comes_late_is_started) {
  start_all();
  exit(coordinator);
  follow(core.on_tick(now));
  now += 1s;
  grant(coordinator, 2);
  now += 5s;
  for (const auto& role : {shard, worker0, worker1}) beat(role);
  follow(core.on_tick(now));
  EXPECT_FALSE(core.ending());
  EXPECT_EQ(running.at(coordinator).incarnation, incarnation{2});
}

// ---- slots that end their workers (R18)

struct poisoned_agent_test : agent_core_test {
  poisoned_agent_test()
      : agent_core_test{true} {
    start_all();
    for (const auto& role : {worker0, worker1}) grant(role, 3, 20);
  }

  void die(const role_name& role, role_end how) {
    const auto self = running.at(role);
    running.erase(role);
    follow(core.on_exited(role, self, how, now));
  }
  /// `worker0` is seen at the same for `time`, alive.
  void watch(std::chrono::milliseconds time, std::uint64_t sequence,
             std::optional<protocol::slot_progress> at = in_slot) {
    for (const auto end = now + time; now < end && running.contains(worker0); now += 100ms) {
      for (const auto& role : {coordinator, shard, worker0, worker1}) beat(role);
      follow(core.on_work_seen({worker0, running.at(worker0), sequence, at}, now));
    }
  }
  bool is_killed() const { return std::count(stopped.begin(), stopped.end(), std::pair{worker0, true}) > 0; }

  static constexpr protocol::slot_progress in_slot{{{7}, {2}}};
};

TEST_F(poisoned_agent_test, a_death_in_a_slot_is_told_with_it_and_is_no_restart_of_the_budget) {
  for (std::uint32_t record = 0; record < 6; ++record)
    die(worker0,
        {.cause = "killed by signal 11 (SEGV)", .slot = protocol::slot_progress{{{7}, {2}, record}, true}});
  EXPECT_FALSE(ended);
  EXPECT_TRUE(exits_told.back().has_progress);
  EXPECT_EQ(exits_told.back().progress, (protocol::slot_progress{{{7}, {2}, 5}, true}));
  EXPECT_THAT(exits_told.back().cause, ::testing::HasSubstr("in record 5 of slot 2 of step 7"));
  for (int i = 0; i < 3; ++i) die(worker0, {"killed by signal 9 (KILL)"});
  EXPECT_FALSE(exits_told.back().has_progress);
  EXPECT_THAT(stopped, ::testing::Contains(std::pair{worker1, false}))
      << "two restarts are allowed, not three";
}

TEST_F(poisoned_agent_test,
       a_worker_that_is_at_one_slot_for_too_long_hangs_and_that_counts_against_the_slot) {
  watch(2s, 4);
  watch(100ms, 6);
  EXPECT_FALSE(is_killed()) << "that slot took 2 s";
  watch(37s, 8);
  EXPECT_FALSE(is_killed());
  watch(4s, 8);
  ASSERT_TRUE(is_killed()) << "20 times as long";
  EXPECT_EQ(events.back(), "role-hung");
  die(worker0, {.cause = "killed by signal 9 (KILL)", .killed_in = in_slot});
  EXPECT_EQ(exits_told.back().progress, in_slot);
  EXPECT_THAT(exits_told.back().cause, ::testing::Not(::testing::HasSubstr("no sign of life")));
}

TEST_F(poisoned_agent_test, before_a_slot_was_seen_to_end_it_may_take_long_and_what_is_no_slot_for_ever) {
  watch(5min, 4);
  EXPECT_FALSE(is_killed());
  watch(20min, 6, std::nullopt);
  EXPECT_FALSE(is_killed());
}

TEST_F(poisoned_agent_test, one_that_was_stopped_from_outside_is_replaced_and_counts_against_no_slot) {
  beat(worker0);
  for (const auto end = now + 11s; now < end; now += 1s) {
    for (const auto& role : {coordinator, shard, worker1}) beat(role);
    follow(core.on_work_seen({worker0, running.at(worker0), 4, in_slot}, now));
    follow(core.on_tick(now));
  }
  ASSERT_TRUE(is_killed());
  die(worker0, {"killed by signal 9 (KILL)"}); // its launcher saw that it was stopped
  EXPECT_FALSE(exits_told.back().has_progress);
  EXPECT_THAT(exits_told.back().cause, ::testing::HasSubstr("no sign of life"));
}

} // namespace
} // namespace dlrun::agent
