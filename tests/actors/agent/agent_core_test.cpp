// An agent's core: who is started when, and what it knows of each.
#include "tests/actors/agent/agent_core_fixture.hpp"

namespace dlrun::agent {
namespace {

TEST_F(agent_core_test, starts_the_coordinator_first_and_the_others_when_it_has_joined_and_granted_fences) {
  follow(core.start(now));
  EXPECT_THAT(started, ::testing::ElementsAre(coordinator));
  grant(worker0, 1);
  EXPECT_EQ(started.size(), 1U) << "the coordinator has not joined";
  follow(core.on_coordinator_joined(coordinator_process, now));
  for (const auto& role : {shard, worker1}) grant(role, 1);
  EXPECT_THAT(started, ::testing::ElementsAre(coordinator, shard, worker0, worker1));
}

TEST_F(agent_core_test, accepts_only_the_coordinator_it_started) {
  follow(core.start(now));
  EXPECT_TRUE(core.book().accepts(joining(coordinator, coordinator_fence)));
  EXPECT_FALSE(core.book().accepts(joining(coordinator, {{1}, 78})));
  EXPECT_FALSE(core.book().accepts(joining(worker0, coordinator_fence)));
}

TEST_F(agent_core_test, of_a_worker_its_share_and_speed_are_shown_while_it_runs) {
  start_all();
  core.on_heartbeat({.role = worker0,
                     .self = running.at(worker0),
                     .state = "training",
                     .slots = 3,
                     .slots_per_kilosecond = 62'500},
                    now);
  const auto view = [&] {
    const auto views = core.book().views();
    return *std::ranges::find_if(views, [](const auto& one) { return one.role == worker0; });
  };
  EXPECT_EQ(view().slots, 3U);
  EXPECT_EQ(view().slots_per_second, 62.5);
}

TEST_F(agent_core_test, metrics_belong_to_the_step_of_the_shard_that_tells_them) {
  start_all();
  EXPECT_FALSE(core.book().reports().metrics());
  core.on_heartbeat({.role = shard,
                     .self = running.at(shard),
                     .state = "training",
                     .step = 9,
                     .has_metrics = true,
                     .metrics = {.epoch = 2}},
                    now);
  ASSERT_TRUE(core.book().reports().metrics());
  EXPECT_EQ(core.book().reports().metrics()->epoch, 2U);
  EXPECT_EQ(core.book().reports().metrics_step(), 9U);
  beat(shard); // of step 5, without any
  EXPECT_EQ(core.book().reports().metrics_step(), 9U);
}

TEST_F(agent_core_test, ignores_ends_and_heartbeats_of_older_starts) {
  start_all();
  const auto old = running.at(worker0);
  exit(worker0);
  follow(core.on_exited(worker0, old, {"late"}, now));
  core.on_heartbeat({.role = worker0, .self = old, .state = "zombie"}, now);
  EXPECT_EQ(exits_told.size(), 1U);
  for (const auto& role : core.book().views()) {
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
  for (const auto& role : core.book().views()) names.push_back(protocol::to_string(role.role));
  EXPECT_THAT(names, ::testing::ElementsAre("coordinator 0", "data_dispatcher 0", "ps_shard 0", "worker 0",
                                            "worker 1"));
  EXPECT_EQ(core.book().reports().step(), 5U);
  EXPECT_EQ(core.book().reports().durable_step(), 3U);
}

} // namespace
} // namespace dlrun::agent
