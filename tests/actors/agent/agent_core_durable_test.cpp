// An agent's core where state is kept: the coordinator and PS shards are started again too.
#include "tests/actors/agent/agent_core_fixture.hpp"

namespace dlrun::agent {
namespace {

using namespace std::chrono_literals;

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
  EXPECT_TRUE(core.book().accepts(joining(coordinator, running.at(coordinator))));
}

TEST_F(durable_agent_core_test,
       a_coordinator_that_is_killed_before_it_was_there_is_started_one_incarnation_further) {
  starts_are_heard = false;
  follow(core.start(now));
  exit(coordinator);
  now += 1s;
  follow(core.on_tick(now));
  EXPECT_EQ(running.at(coordinator), (protocol::fence{{2}, coordinator_fence.token}));
  exit(coordinator);
  now += 1s;
  follow(core.on_tick(now));
  EXPECT_EQ(running.at(coordinator).incarnation, incarnation{3});
  follow(core.on_coordinator_joined(coordinator_process, now));
  EXPECT_THAT(events,
              ::testing::ElementsAre("role-exited", "role-restarted", "role-exited", "role-restarted"));
  EXPECT_FALSE(core.ending());
}

TEST_F(durable_agent_core_test, a_new_coordinator_hears_what_ended_meanwhile_and_what_runs) {
  start_all();
  grant(coordinator, 2);
  exit(coordinator);
  exit(worker0);
  EXPECT_TRUE(exits_told.empty()) << "there is nobody to tell";
  starts_told.clear();
  now += std::chrono::milliseconds(7);
  follow(core.on_coordinator_joined(coordinator_process, now));
  ASSERT_EQ(exits_told.size(), 2u);
  EXPECT_EQ(exits_told[0].role, coordinator);
  EXPECT_EQ(exits_told[1].role, worker0);
  EXPECT_EQ(exits_told[1].age_us, 7000u);
  EXPECT_THAT(starts_told, ::testing::UnorderedElementsAre(shard, worker0, worker1));
}

TEST_F(durable_agent_core_test, a_coordinator_that_is_deposed_does_not_end_the_job) {
  start_all();
  grant(coordinator, 2);
  exit(coordinator);
  follow(core.on_coordinator_joined(coordinator_process, now));
  follow(core.on_job_ended({.reason = "its report comes too late", .coordinator = {1}}, now));
  EXPECT_TRUE(stopped.empty());
  EXPECT_FALSE(core.ending());
  follow(core.on_job_ended({.outcome = protocol::job_outcome::completed, .reason = "", .coordinator = {2}},
                           now));
  EXPECT_TRUE(core.ending());
}

TEST_F(durable_agent_core_test, a_coordinator_that_joins_again_hears_what_may_have_been_lost) {
  start_all();
  exit(worker0);
  exits_told.clear();
  starts_told.clear();
  follow(core.on_coordinator_joined(coordinator_process, now));
  ASSERT_EQ(exits_told.size(), 1u);
  EXPECT_EQ(exits_told[0].role, worker0);
  EXPECT_TRUE(exits_told[0].again);
  EXPECT_THAT(starts_told, ::testing::Contains(shard));
  EXPECT_TRUE(stopped.empty());
}

TEST_F(durable_agent_core_test, a_new_coordinator_hears_again_of_what_the_one_before_was_told) {
  start_all();
  grant(coordinator, 2);
  exit(worker0);
  exit(coordinator);
  exits_told.clear();
  follow(core.on_coordinator_joined(coordinator_process, now));
  ASSERT_EQ(exits_told.size(), 2u);
  EXPECT_EQ(exits_told[0].role, worker0);
  EXPECT_TRUE(exits_told[0].again) << "it may have died before that was in its journal";
  EXPECT_EQ(exits_told[1].role, coordinator);
  EXPECT_FALSE(exits_told[1].again);
  grant(coordinator, 3);
  exit(coordinator);
  exits_told.clear();
  follow(core.on_coordinator_joined(coordinator_process, now));
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

TEST_F(durable_agent_core_test, a_first_start_that_is_lost_before_it_was_heard_to_run_is_made_again) {
  starts_are_heard = false;
  start_all();
  EXPECT_THAT(started, ::testing::ElementsAre(coordinator, shard)) << "each when the one before runs";
  starts_are_heard = true;
  exit(shard, {.cause = "is lost with host beta"});
  EXPECT_THAT(started, ::testing::ElementsAre(coordinator, shard, worker0, worker1)) << "nobody waits for it";
  now += 100ms;
  follow(core.on_tick(now));
  EXPECT_EQ(started.back(), shard);
  EXPECT_EQ(running.at(shard).incarnation, incarnation{2});
  ASSERT_EQ(exits_told.size(), 1U);
  EXPECT_EQ(exits_told[0].role, shard);
  EXPECT_TRUE(exits_told[0].replaced);
  EXPECT_THAT(events, ::testing::ElementsAre("role-exited", "role-restarted"));
  EXPECT_FALSE(core.ending() || ended);
}

TEST_F(durable_agent_core_test, first_starts_that_are_lost_with_one_host_use_one_restart) {
  for (const auto& role : {shard, worker0, worker1}) grant(role, 1, 9);
  starts_are_heard = false;
  follow(core.start(now));
  follow(core.on_coordinator_joined(coordinator_process, now));
  for (const auto& role : {shard, worker0, worker1})
    exit(role, {.cause = "is lost with host beta", .is_one_of_several = role != shard});
  starts_are_heard = true;
  now += 100ms;
  follow(core.on_tick(now));
  for (const auto& role : {shard, worker0, worker1}) EXPECT_EQ(running.at(role).incarnation, incarnation{2});
  exit(worker0); // the second restart of two
  EXPECT_FALSE(core.ending() || ended) << ended->reason;
  exit(worker0);
  EXPECT_FALSE(stopped.empty()) << "the third is one too many";
}

TEST_F(durable_agent_core_test,
       one_that_would_end_again_as_its_first_start_did_ends_the_job_with_its_reason) {
  starts_are_heard = false;
  start_all();
  exit(shard, {.cause = "exited with code 127", .is_lasting = true});
  ASSERT_EQ(stops_told.size(), 1U);
  EXPECT_THAT(stops_told[0].reason,
              ::testing::StartsWith("ps_shard 0 exited with code 127; it gave no sign of life before"));
  now += 1s;
  follow(core.on_tick(now));
  EXPECT_FALSE(running.contains(shard));
}

TEST_F(durable_agent_core_test, a_first_start_that_ends_unheard_while_the_job_ends_is_not_made_again) {
  starts_are_heard = false;
  start_all();
  follow(core.on_stop({protocol::job_outcome::interrupted, "Ctrl-C"}, now));
  follow(core.on_job_ended({.reason = "Ctrl-C", .coordinator = coordinator_fence.incarnation}, now));
  started.clear();
  exit(shard);
  EXPECT_THAT(started, ::testing::IsEmpty());
  exit(coordinator);
  EXPECT_TRUE(ended.has_value());
}

/// R4: it issues everybody's fences, its own too.
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

/// R4. What it had granted when it died may still come, and is not used for the start that is
/// there.
TEST_F(durable_agent_core_test, a_coordinator_that_dies_before_it_has_granted_a_fence_is_given_one) {
  follow(core.start(now));
  follow(core.on_coordinator_joined(coordinator_process, now));
  exit(coordinator);
  now += 1s;
  follow(core.on_tick(now));
  EXPECT_FALSE(running.contains(coordinator)) << "a grant may be on its way";
  for (int tick = 0; tick < 3; ++tick) follow(core.on_tick(now += 1s));
  EXPECT_EQ(running.at(coordinator), (protocol::fence{{2}, coordinator_fence.token}));
  grant(coordinator, 2);
  EXPECT_EQ(running.at(coordinator).token, coordinator_fence.token);
  follow(core.on_coordinator_joined(coordinator_process, now));
  exit(coordinator);
  for (int tick = 0; tick < 4; ++tick) follow(core.on_tick(now += 1s));
  EXPECT_EQ(running.at(coordinator).incarnation, incarnation{3});
  EXPECT_FALSE(core.ending());
}

/// Heartbeats go on, each tick.
void wait_for_journal(agent_core_test& agent, std::chrono::seconds time) {
  const auto until = agent.now + time;
  for (; agent.now < until; agent.now += std::chrono::milliseconds(500)) {
    for (const auto& [role, self] : agent.running) {
      const auto* const state = role == agent_core_test::coordinator ? "no-journal" : "training";
      agent.core.on_heartbeat({.role = role, .self = self, .state = state}, agent.now);
    }
    agent.follow(agent.core.on_tick(agent.now));
  }
}

TEST_F(durable_agent_core_test, a_coordinator_that_waits_for_its_journal_is_let_wait) {
  start_all();
  grant(coordinator, 2, 10);
  exit(coordinator);
  started.clear();
  wait_for_journal(*this, std::chrono::hours(1));
  EXPECT_TRUE(stopped.empty());
  EXPECT_TRUE(started.empty());
  EXPECT_FALSE(core.ending());
  follow(core.on_coordinator_joined(coordinator_process, now));
  EXPECT_THAT(starts_told, ::testing::Contains(worker0));
}

struct moving_agent_core_test : agent_core_test {
  moving_agent_core_test()
      : agent_core_test(true, std::chrono::seconds(45)) {}
};

TEST_F(moving_agent_core_test, a_coordinator_without_its_journal_moves_as_long_as_two_fences_are_left) {
  start_all();
  grant(coordinator, 2, 10);
  exit(coordinator);
  for (int tries = 0; tries < 8; ++tries) {
    wait_for_journal(*this, std::chrono::seconds(44));
    ASSERT_TRUE(stopped.empty()) << tries;
    wait_for_journal(*this, std::chrono::seconds(2));
    ASSERT_THAT(stopped, ::testing::ElementsAre(std::pair(coordinator, true))) << tries;
    EXPECT_EQ(events.back(), "coordinator-moves");
    stopped.clear();
    exit(coordinator);
    ASSERT_TRUE(running.contains(coordinator)) << "it counts against no restart intensity";
  }
  wait_for_journal(*this, std::chrono::hours(1));
  EXPECT_TRUE(stopped.empty()) << "the last ones are kept";
  EXPECT_FALSE(core.ending());
}

// ---- R35

struct returned_root_core_test : agent_core_test {
  returned_root_core_test()
      : agent_core_test(true) {}

  /// It has given a sign of life, and ends.
  void end(const role_name& role, const protocol::fence& self) {
    core.on_heartbeat({.role = role, .self = self, .state = "training"}, now);
    follow(core.on_exited(role, self, {"killed by signal 9"}, now));
  }

  const protocol::fence of_shard{{7}, 70};
  const protocol::fence of_worker{{8}, 80};
};

TEST_F(returned_root_core_test, what_runs_is_not_started_again_and_told_to_the_coordinator) {
  follow(core.start(now, {{shard, of_shard, 200}, {worker1, of_worker, 201}}));
  EXPECT_THAT(events, ::testing::ElementsAre("roles-adopted"));
  EXPECT_THAT(started, ::testing::ElementsAre(coordinator));
  follow(core.on_coordinator_joined(coordinator_process, now));
  EXPECT_THAT(starts_told, ::testing::UnorderedElementsAre(shard, worker1));
  for (const auto& role : {shard, worker0, worker1}) grant(role, 9);
  EXPECT_THAT(started, ::testing::ElementsAre(coordinator, worker0));
}

TEST_F(returned_root_core_test, what_was_taken_over_and_ends_starts_again_under_another_fence) {
  follow(core.start(now, {{shard, of_shard, 200}, {worker1, of_worker, 201}}));
  end(worker1, of_worker);
  follow(core.on_coordinator_joined(coordinator_process, now));
  for (const auto& role : {shard, worker0, worker1}) grant(role, 9);
  EXPECT_EQ(running.at(worker1).incarnation, incarnation{9});
  end(shard, of_shard);
  EXPECT_EQ(running.at(shard).incarnation, incarnation{9});
}

/// It had more workers once, or is to have them again: that the coordinator says.
TEST_F(returned_root_core_test, a_worker_beyond_those_that_are_wanted_is_missed_only_once_it_is_wanted) {
  constexpr role_name worker2{role_kind::worker, 2};
  follow(core.start(now, {{worker2, of_worker, 201}}));
  follow(core.on_coordinator_joined(coordinator_process, now));
  const auto pass = [&](int seconds) {
    for (int second = 0; second < seconds; ++second) {
      beat(coordinator);
      follow(core.on_tick(now += std::chrono::seconds(1)));
    }
  };
  pass(60);
  EXPECT_THAT(stopped, ::testing::IsEmpty());
  follow(core.on_workers_wanted({9, 0, 3}, now));
  core.on_heartbeat({.role = worker2, .self = of_worker, .state = "training"}, now);
  pass(60);
  EXPECT_THAT(stopped, ::testing::ElementsAre(std::pair(worker2, true)));
  EXPECT_EQ(events.back(), "role-hung");
}

/// The root before it had given the host up that this runs on.
TEST_F(returned_root_core_test, what_runs_and_is_over_for_the_coordinator_is_killed_once_and_starts_again) {
  follow(core.start(now, {{shard, of_shard, 200}}));
  follow(core.on_coordinator_joined(coordinator_process, now));
  grant(shard, 9);
  follow(core.on_start_over({shard, {{6}, 60}}));
  EXPECT_THAT(stopped, ::testing::IsEmpty()) << "that is not what runs";
  for (int told = 0; told < 2; ++told) follow(core.on_start_over({shard, of_shard}));
  EXPECT_THAT(stopped, ::testing::ElementsAre(std::pair(shard, true)));
  end(shard, of_shard);
  EXPECT_EQ(running.at(shard).incarnation, incarnation{9});
  EXPECT_TRUE(exits_told.back().left) << "its loss was counted before";
}

/// R41: a coordinator that read an older journal.
struct older_coordinator_test : returned_root_core_test {
  static constexpr auto own = coordinator_fence.incarnation.value;

  void join() {
    follow(core.start(now, {{shard, of_shard, 200}}));
    follow(core.on_coordinator_joined(coordinator_process, now));
  }
  void hear_that_the_shard_joined(std::uint64_t number, std::uint64_t process) {
    follow(core.on_heartbeat(
        {.role = shard, .self = of_shard, .state = "training", .coordinator = {{number}, process}}, now));
  }
  void end_coordinator() {
    follow(core.on_exited(coordinator, coordinator_fence, {"killed by signal 9"}, now));
  }
};

TEST_F(older_coordinator_test, makes_way_for_one_that_is_newer_than_what_roles_have_joined) {
  join();
  hear_that_the_shard_joined(own, coordinator_process);
  EXPECT_THAT(stopped, ::testing::IsEmpty());
  for (int told = 0; told < 2; ++told) hear_that_the_shard_joined(own + 4, 66);
  EXPECT_THAT(stopped, ::testing::ElementsAre(std::pair(coordinator, true)));
  end_coordinator();
  EXPECT_EQ(running.at(coordinator).incarnation, incarnation{own + 5});
  EXPECT_THAT(events, ::testing::Contains("role-left"));
}

TEST_F(older_coordinator_test, makes_way_too_if_roles_have_joined_another_of_the_same_number) {
  join();
  hear_that_the_shard_joined(own, 66);
  EXPECT_THAT(stopped, ::testing::ElementsAre(std::pair(coordinator, true)));
  end_coordinator();
  EXPECT_EQ(running.at(coordinator).incarnation, incarnation{own + 1});
}

TEST_F(older_coordinator_test, is_not_judged_before_it_has_joined) {
  follow(core.start(now, {{shard, of_shard, 200}}));
  hear_that_the_shard_joined(own, 66);
  EXPECT_THAT(stopped, ::testing::IsEmpty());
}

TEST_F(returned_root_core_test, a_coordinator_that_runs_is_the_one_that_may_join) {
  const protocol::fence of_coordinator{{5}, 50};
  follow(core.start(now, {{coordinator, of_coordinator, 199}, {shard, of_shard, 200}}));
  EXPECT_THAT(started, ::testing::IsEmpty());
  EXPECT_FALSE(core.book().accepts(joining(coordinator, coordinator_fence)));
  EXPECT_TRUE(core.book().accepts(joining(coordinator, of_coordinator)));
  follow(core.on_coordinator_joined(coordinator_process, now));
  EXPECT_THAT(starts_told, ::testing::ElementsAre(shard));
}

TEST_F(returned_root_core_test, workers_beyond_the_specification_are_kept_if_they_are_still_wanted) {
  const role_name worker2{role_kind::worker, 2};
  const role_name worker3{role_kind::worker, 3};
  follow(core.start(now, {{worker2, of_worker, 201}, {worker3, {{8}, 81}, 202}}));
  follow(core.on_coordinator_joined(coordinator_process, now));
  grant(shard, 1);
  follow(core.on_workers_wanted({9, 0, 3}, now));
  for (const auto& role : {worker0, worker1}) grant(role, 1);
  EXPECT_THAT(started, ::testing::ElementsAre(coordinator, shard, worker0, worker1));
  EXPECT_THAT(stopped, ::testing::ElementsAre(std::pair(worker3, true)));
  end(worker2, of_worker);
  grant(worker2, 9);
  EXPECT_EQ(running.at(worker2).incarnation, incarnation{9});
}

} // namespace
} // namespace dlrun::agent
