// An agent's core: slots that end their workers (R18).
#include "tests/actors/agent/agent_core_fixture.hpp"

namespace dlrun::agent {
namespace {

using namespace std::chrono_literals;

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
