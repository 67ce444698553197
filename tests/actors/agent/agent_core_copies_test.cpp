// An agent's core where the PS shard's store has a copy.
#include "tests/actors/agent/agent_core_fixture.hpp"

namespace dlrun::agent {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

struct agent_core_with_copies : agent_core_test {
  static constexpr role_name keeper{role_kind::keeper, 0};

  agent_core_with_copies()
      : agent_core_test(true) {
    core = agent_core{{.workers = 2,
                       .ps_shards = 1,
                       .copies = 1,
                       .scale = {.least = 1, .most = 4, .slots = 4},
                       .agent = 9,
                       .coordinator = coordinator_fence,
                       .state_is_durable = true,
                       .restart_intensity = 2}};
    start_all();
    grant(keeper, 1, 29);
  }
  bool vacate(const role_name& which, protocol::stop_how how) {
    agent_actions out;
    const bool is_taken = core.vacate(which, how, "host gamma is drained", out);
    follow(out);
    return is_taken;
  }
  void say(const protocol::copy_word& copy, bool is_moving = false) {
    follow(core.on_heartbeat({.role = shard,
                              .self = running.at(shard),
                              .state = "training",
                              .copies = {.all = {copy}, .is_moving = is_moving}},
                             now));
  }
  bool is_told_to_move() const {
    return core.book().keepers_for({.role = shard, .self = running.at(shard)}).moves;
  }
  role_view view_of(const role_name& which) const {
    const auto all = core.book().views();
    return *std::ranges::find(all, which, &role_view::role);
  }
  protocol::copy_word counting() const {
    const auto start = running.at(keeper).incarnation;
    return {.is_known = true, .counted = start, .keeper = start, .end = {40}};
  }
  /// Everybody but the keeper gives signs of life.
  agent_actions pass(protocol::duration time) {
    now += time;
    for (const auto& role : {coordinator, shard, worker0, worker1}) beat(role);
    return core.on_tick(now);
  }
  int tenths_until_it_runs() {
    int tenths = 0;
    for (; !running.contains(keeper) && tenths < 200; ++tenths) {
      follow(pass(std::chrono::milliseconds(100)));
    }
    return tenths;
  }
  copy_facts start_keeper_again() {
    const auto self = running.at(keeper);
    running.erase(keeper);
    auto actions = core.on_exited(keeper, self, {"is over"}, now);
    for (int tenth = 0; tenth < 200; ++tenth) {
      for (const auto& action : actions)
        if (const auto* start = std::get_if<start_role>(&action); start != nullptr && start->role == keeper) {
          follow(actions);
          return start->copies;
        }
      follow(actions);
      actions = pass(std::chrono::milliseconds(100));
    }
    return {};
  }
  /// With what the PS shard was started last.
  std::vector<role_name> start_shard_again() {
    std::vector<role_name> with;
    const auto self = running.at(shard);
    const auto actions = core.on_exited(shard, self, {"is lost"}, now);
    for (const auto& action : actions)
      if (const auto* start = std::get_if<start_role>(&action); start != nullptr && start->role == shard)
        with = start->copies.whole;
    follow(actions);
    return with;
  }
};

TEST_F(agent_core_with_copies, starts_a_keeper_of_each_ps_shard_last) {
  EXPECT_THAT(started, ElementsAre(coordinator, shard, worker0, worker1, keeper));
}

TEST_F(agent_core_with_copies, tells_that_the_copy_is_whole_and_that_it_is_lost_with_its_keeper) {
  say(counting());
  say(counting());
  EXPECT_EQ(std::ranges::count(events, "copy-whole"), 1);
  exit(keeper);
  EXPECT_EQ(std::ranges::count(events, "copy-lost"), 1);
  EXPECT_EQ(started.back(), keeper) << "another one is to fill a copy";
  EXPECT_FALSE(core.ending());
}

TEST_F(agent_core_with_copies, says_nothing_is_lost_of_a_copy_that_was_not_whole) {
  exit(keeper);
  EXPECT_THAT(events, Not(Contains("copy-lost")));
}

TEST_F(agent_core_with_copies, a_ps_shard_starts_with_what_is_believed_of_its_copy) {
  EXPECT_THAT(start_shard_again(), IsEmpty());
  grant(shard, 3);
  say(counting());
  EXPECT_THAT(start_shard_again(), ElementsAre(keeper));
}

TEST_F(agent_core_with_copies, a_keeper_makes_way_for_its_ps_shard_at_once_and_starts_again) {
  for (int told = 0; told < 2; ++told) vacate(keeper, protocol::stop_how::kill);
  EXPECT_THAT(stopped, ElementsAre(std::pair{keeper, true})) << "its PS shard waits for the store";
  exit(keeper, {.cause = "was killed by signal 9"});
  EXPECT_THAT(events, Contains("keeper-left"));
  EXPECT_EQ(started.back(), keeper);
  EXPECT_TRUE(exits_told.back().left);
  EXPECT_EQ(stopped.size(), 1U);
}

/// R37.
TEST_F(agent_core_with_copies, a_ps_shard_that_is_asked_to_move_starts_again_at_once_and_uses_no_restart) {
  say(counting());
  for (int moves = 0; moves < 5; ++moves) {
    grant(shard, 3 + static_cast<std::uint64_t>(moves));
    vacate(shard, protocol::stop_how::end);
    EXPECT_EQ(stopped.back(), (std::pair{shard, false}));
    exit(shard, {.cause = "exited with code 0"});
    EXPECT_EQ(started.back(), shard);
    EXPECT_TRUE(exits_told.back().left);
  }
  EXPECT_THAT(events, Contains("role-left"));
  EXPECT_THAT(events, Not(Contains("role-exited")));
  EXPECT_FALSE(core.ending());
}

/// It ends by itself, when it has got so far.
TEST_F(agent_core_with_copies,
       a_ps_shard_that_is_to_leave_is_told_so_with_each_answer_while_its_copy_is_whole) {
  EXPECT_TRUE(vacate(shard, protocol::stop_how::leave));
  EXPECT_FALSE(is_told_to_move()) << "the copy is not whole";
  say(counting());
  EXPECT_TRUE(is_told_to_move());
  EXPECT_THAT(stopped, IsEmpty());
  EXPECT_THAT(asked_to_leave, IsEmpty()) << "what it is sent cannot be taken back";
  grant(shard, 3);
  exit(shard, {.cause = "exited with code 0"});
  EXPECT_TRUE(exits_told.back().left);
  EXPECT_EQ(started.back(), shard);
  EXPECT_FALSE(is_told_to_move()) << "that was for the start before";
}

TEST_F(agent_core_with_copies,
       a_ps_shard_that_is_to_stay_has_left_when_it_ends_before_it_says_that_it_stays) {
  say(counting());
  vacate(shard, protocol::stop_how::leave);
  core.let_stay(shard);
  EXPECT_FALSE(is_told_to_move());
  say(counting(), true); // it has not heard it
  grant(shard, 3);
  exit(shard, {.cause = "exited with code 0"});
  EXPECT_TRUE(exits_told.back().left);
}

TEST_F(agent_core_with_copies, one_that_has_said_that_it_stays_and_ends_has_died) {
  say(counting());
  vacate(shard, protocol::stop_how::leave);
  say(counting(), true);
  core.let_stay(shard);
  EXPECT_TRUE(view_of(shard).is_leaving);
  say(counting());
  EXPECT_FALSE(view_of(shard).is_leaving);
  grant(shard, 3);
  exit(shard, {.cause = "was killed by signal 9"});
  EXPECT_FALSE(exits_told.back().left);
  EXPECT_THAT(events, Contains("role-exited"));
}

TEST_F(agent_core_with_copies, one_that_is_to_stay_may_be_asked_to_leave_again_at_once) {
  say(counting());
  vacate(shard, protocol::stop_how::leave);
  core.let_stay(shard);
  EXPECT_TRUE(vacate(shard, protocol::stop_how::leave));
  EXPECT_TRUE(is_told_to_move());
  vacate(shard, protocol::stop_how::kill);
  EXPECT_THAT(stopped, ElementsAre(std::pair{shard, true}));
}

TEST_F(agent_core_with_copies, who_is_asked_to_move_is_asked_again_only_more_strongly) {
  for (const auto how : {protocol::stop_how::end, protocol::stop_how::end, protocol::stop_how::kill,
                         protocol::stop_how::kill, protocol::stop_how::end})
    vacate(shard, how);
  EXPECT_THAT(stopped, ElementsAre(std::pair{shard, false}, std::pair{shard, true}));
}

TEST_F(agent_core_with_copies, a_copy_that_is_given_up_counts_no_more_from_that_moment) {
  say(counting());
  vacate(keeper, protocol::stop_how::kill);
  EXPECT_THAT(start_shard_again(), IsEmpty()) << "its keeper may end at any moment";
}

/// It issues the fences, its own too.
TEST_F(agent_core_with_copies, the_coordinator_is_not_asked_to_move_before_its_next_start_has_a_fence) {
  EXPECT_FALSE(vacate(coordinator, protocol::stop_how::end));
  EXPECT_THAT(stopped, IsEmpty());
  grant(coordinator, 2);
  EXPECT_TRUE(vacate(coordinator, protocol::stop_how::end));
  EXPECT_TRUE(vacate(coordinator, protocol::stop_how::end)) << "it is on its way";
  EXPECT_THAT(stopped, ElementsAre(std::pair{coordinator, false}));
  exit(coordinator, {.cause = "exited with code 0"});
  EXPECT_EQ(started.back(), coordinator);
  EXPECT_FALSE(core.ending());
}

/// Each time later, 10 s at most: it may be a store that cannot be opened.
TEST_F(agent_core_with_copies, keepers_that_die_again_and_again_use_up_no_restarts_and_wait_longer) {
  std::vector<int> waits;
  for (int death = 0; death < 10; ++death) {
    exit(keeper);
    waits.push_back(tenths_until_it_runs());
  }
  EXPECT_THAT(waits, ElementsAre(1, 2, 4, 8, 16, 32, 64, 100, 100, 100));
  EXPECT_FALSE(core.ending());
}

TEST_F(agent_core_with_copies, after_one_whose_copy_was_whole_the_next_one_starts_at_once) {
  exit(keeper);
  EXPECT_EQ(tenths_until_it_runs(), 1);
  say(counting());
  exit(keeper);
  EXPECT_EQ(tenths_until_it_runs(), 0);
}

/// Its program, its host or its certificate may be gone: training needs none of that.
TEST_F(agent_core_with_copies, a_keeper_that_cannot_be_started_ends_nothing_and_is_tried_again) {
  starts_are_heard = false;
  exit(keeper);
  for (const auto code : {error_code::system, error_code::bad_usage})
    for (int time = 0; time < 4; ++time) {
      tenths_until_it_runs();
      const auto self = running.at(keeper);
      running.erase(keeper);
      follow(core.on_start_failed(keeper, self, {code, "no such file"}, now));
      ASSERT_FALSE(core.ending());
    }
  tenths_until_it_runs();
  EXPECT_TRUE(running.contains(keeper));
}

/// One that waited for a host was told as running.
TEST_F(agent_core_with_copies, one_that_cannot_be_started_after_it_has_waited_for_a_host_is_tried_again) {
  starts_are_heard = false;
  exit(keeper);
  tenths_until_it_runs();
  follow(core.on_started(keeper, running.at(keeper), 0, now));
  const auto self = running.at(keeper);
  running.erase(keeper);
  follow(core.on_start_failed(keeper, self, {error_code::system, "the host has no room"}, now));
  tenths_until_it_runs();
  EXPECT_TRUE(running.contains(keeper));
}

/// It has no start in hand that could be told of.
TEST_F(agent_core_with_copies, a_new_coordinator_hears_nothing_of_one_that_cannot_be_started_and_is_to_be) {
  starts_are_heard = false;
  exit(keeper);
  tenths_until_it_runs();
  follow(core.on_started(keeper, running.at(keeper), 0, now));
  follow(core.on_start_failed(keeper, running.at(keeper), {error_code::system, "the host has no room"}, now));
  starts_told.clear();
  follow(core.on_coordinator_joined(coordinator_process, now));
  EXPECT_THAT(starts_told, Not(Contains(keeper)));
}

TEST_F(agent_core_with_copies, one_whose_program_fails_lastingly_ends_nothing) {
  exit(keeper, {.cause = "exited with code 2", .is_lasting = true});
  EXPECT_FALSE(core.ending());
  tenths_until_it_runs();
  EXPECT_TRUE(running.contains(keeper));
}

TEST_F(agent_core_with_copies, after_one_that_was_given_up_the_next_is_to_go_elsewhere) {
  auto silent = counting();
  say(silent);
  silent.is_silent = true;
  say(silent);
  EXPECT_TRUE(start_keeper_again().is_given_up);
  EXPECT_FALSE(start_keeper_again().is_given_up);
}

TEST_F(agent_core_with_copies, a_keeper_for_which_its_ps_shard_waits_in_vain_is_killed_once) {
  auto silent = counting();
  say(silent);
  silent.is_silent = true;
  say(silent);
  say(silent);
  EXPECT_THAT(stopped, ElementsAre(std::pair{keeper, true}));
  EXPECT_THAT(events, Contains("copy-silent"));
}

/// Until it has a host it has no process, and so no sign of life.
TEST_F(agent_core_with_copies, a_keeper_that_waits_for_a_host_is_not_taken_for_hung) {
  starts_are_heard = false;
  exit(keeper);
  tenths_until_it_runs();
  follow(core.on_started(keeper, running.at(keeper), 0, now));
  for (int second = 0; second < 100; ++second) {
    follow(pass(std::chrono::seconds(1)));
  }
  EXPECT_THAT(stopped, IsEmpty());
}

/// Nor is a worker, for which no host has a GPU; from when it has one on it has to be heard.
TEST_F(agent_core_with_copies, a_worker_is_taken_for_hung_only_once_it_has_a_host) {
  const auto pass_in_silence = [&](int seconds) {
    for (int i = 0; i < seconds; ++i) {
      now += std::chrono::seconds(1);
      for (const auto& role : {coordinator, shard, worker0}) beat(role);
      follow(core.on_heartbeat({.role = keeper, .self = running.at(keeper), .state = "whole"}, now));
      follow(core.on_tick(now));
    }
  };
  starts_are_heard = false;
  exit(worker1);
  for (int tenth = 0; !running.contains(worker1) && tenth < 200; ++tenth) {
    now += std::chrono::milliseconds(100);
    follow(core.on_tick(now));
  }
  follow(core.on_started(worker1, running.at(worker1), 0, now));
  pass_in_silence(100);
  EXPECT_THAT(stopped, IsEmpty());
  follow(core.on_started(worker1, running.at(worker1), 100, now));
  pass_in_silence(100);
  EXPECT_THAT(stopped, ElementsAre(std::pair{worker1, true}));
}

} // namespace
} // namespace dlrun::agent
