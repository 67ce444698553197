#include "actors/data_dispatcher/stall_finder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::data_dispatcher {
namespace {

using namespace std::chrono_literals;
using protocol::make_slot_range;
using protocol::ps_shard_role;
using protocol::stall;
using protocol::stall_phase;
using protocol::worker_role;
using std::chrono::milliseconds;
using testing::Optional;

constexpr std::uint32_t slots = 4;

/// A job with two PS shards at version 7 of 100 and two workers, each with two of four slots.
class stall_finder_test : public testing::Test {
protected:
  stall_finder_test() {
    for (std::uint32_t index = 0; index < 2; ++index) {
      auto& shard = shard_statuses[index];
      shard.shard = {index};
      shard.self = {{1}, 0};
      shard.applied = shard.committed = {7};
      auto& worker = worker_statuses[index];
      worker.worker = {index};
      worker.self = {{1}, 0};
      worker.activity.phase = stall_phase::pushing;
      leases.join({index}, {1}, now, ignored);
    }
  }

  /// Time passes, in which all that live say how they are. @returns the news.
  std::vector<stall> pass(milliseconds time) {
    std::vector<stall> news;
    for (auto end = now + time; now < end;) {
      now += 50ms;
      for (auto& [index, status] : shard_statuses) hear(status);
      for (const auto& [index, status] : worker_statuses) workers.on_status(status, now);
      if (const auto one = finder.look({shards, workers, leases, evaluator}, now)) news.push_back(*one);
    }
    return news;
  }
  void hear(protocol::shard_status& status) {
    ++status.sequence;
    shards.on_status(status, ignored);
    finder.on_shard(status, now);
  }
  /// Both PS shards have these slots of the open step.
  void hold(protocol::slot_range held) {
    for (auto& [index, status] : shard_statuses) status.durable.held = {{step_from(status.applied), held}};
  }
  stall the_only(milliseconds time = 1500ms) {
    const auto news = pass(time);
    EXPECT_EQ(news.size(), 1U);
    return news.empty() ? stall{} : news.front();
  }

  protocol::time_point now{std::chrono::hours(1)};
  data_dispatcher_actions ignored;
  shard_watch shards{2};
  worker_watch workers;
  lease_book leases{{.dispatcher = {6}, .slots = slots}};
  std::optional<std::pair<worker_id, incarnation>> evaluator;
  std::map<std::uint32_t, protocol::shard_status> shard_statuses;
  std::map<std::uint32_t, protocol::worker_status> worker_statuses;
  stall_finder finder{{.steps = 100, .slots_of = [](step_id) { return slots; }}};
};

TEST_F(stall_finder_test, a_worker_that_computes_is_blamed_with_its_slot) {
  hold(make_slot_range(0, 2));
  worker_statuses[1].activity = {.phase = stall_phase::computing, .slot = {3}};
  const auto found = the_only();
  EXPECT_EQ(found.role, worker_role({1}));
  EXPECT_EQ(found.incarnation, incarnation{1});
  EXPECT_EQ(found.phase, stall_phase::computing);
  EXPECT_TRUE(found.has_slot);
  EXPECT_EQ(found.slot, slot_id{3});
  EXPECT_EQ(found.version, version_id{7});
  EXPECT_GE(found.after_us, 1000000U);
  EXPECT_LE(found.after_us, 1100000U);
}

TEST_F(stall_finder_test, nothing_is_said_before_a_second_is_over) { EXPECT_TRUE(pass(900ms).empty()); }

TEST_F(stall_finder_test, steps_that_usually_take_long_are_no_stall) {
  shard_statuses[1].step_times.p50_us = 2'000'000;
  EXPECT_TRUE(pass(5s).empty());
  EXPECT_EQ(pass(2s).size(), 1U);
}

TEST_F(stall_finder_test, a_worker_that_is_not_heard_is_silent) {
  worker_statuses.erase(0);
  const auto found = the_only();
  EXPECT_EQ(found.role, worker_role({0}));
  EXPECT_EQ(found.phase, stall_phase::silent);
}

TEST_F(stall_finder_test, what_a_worker_waits_for_is_named) {
  worker_statuses[0].activity = {.phase = stall_phase::fetching, .ps_shard = {1}};
  const auto found = the_only();
  EXPECT_EQ(found.phase, stall_phase::fetching);
  EXPECT_TRUE(found.has_ps_shard);
  EXPECT_EQ(found.ps_shard, ps_shard_id{1});
}

TEST_F(stall_finder_test, of_a_gradient_that_does_not_come_the_ps_shard_that_lacks_it_is_named) {
  hold(make_slot_range(0, slots));
  shard_statuses[1].durable.held = {{{7}, make_slot_range(0, 2)}};
  const auto found = the_only();
  EXPECT_EQ(found.role, worker_role({1}));
  EXPECT_EQ(found.phase, stall_phase::pushing);
  EXPECT_EQ(found.slot, slot_id{2});
  EXPECT_EQ(found.ps_shard, ps_shard_id{1});
}

TEST_F(stall_finder_test, gradients_of_the_next_step_do_not_count) {
  hold(make_slot_range(0, slots));
  shard_statuses[0].durable.held = {{{8}, make_slot_range(0, slots)}};
  EXPECT_EQ(the_only().role, worker_role({0}));
}

TEST_F(stall_finder_test, when_no_worker_is_there_the_first_that_is_missing_is_blamed) {
  pass(50ms);
  leases.lose({0}, {1}, now, ignored);
  leases.lose({1}, {1}, now, ignored);
  const auto found = the_only();
  EXPECT_EQ(found.role, worker_role({0}));
  EXPECT_EQ(found.phase, stall_phase::gone);
}

TEST_F(stall_finder_test, a_ps_shard_that_is_lost_is_gone_whatever_workers_do) {
  pass(50ms);
  shards.on_lost({1}, {1});
  shard_statuses.erase(1);
  const auto found = the_only();
  EXPECT_EQ(found.role, ps_shard_role({1}));
  EXPECT_EQ(found.phase, stall_phase::gone);
}

TEST_F(stall_finder_test, a_ps_shard_that_is_stopped_is_silent) {
  pass(50ms);
  shard_statuses.erase(0);
  const auto found = the_only();
  EXPECT_EQ(found.role, ps_shard_role({0}));
  EXPECT_EQ(found.phase, stall_phase::silent);
}

TEST_F(stall_finder_test, a_ps_shard_that_has_all_gradients_is_blamed_itself) {
  hold(make_slot_range(0, slots));
  shard_statuses[0].applied = {8};
  EXPECT_EQ(the_only().phase, stall_phase::updating);
}

TEST_F(stall_finder_test, a_ps_shard_whose_log_is_behind_waits_for_its_disk) {
  hold(make_slot_range(0, slots));
  shard_statuses[0].committed = {6};
  const auto found = the_only();
  EXPECT_EQ(found.role, ps_shard_role({0}));
  EXPECT_EQ(found.phase, stall_phase::logging);
}

TEST_F(stall_finder_test, who_evaluates_is_blamed_where_training_waits_for_the_result) {
  hold(make_slot_range(0, slots));
  for (auto& [index, status] : shard_statuses) status.durable.may_reach = {7};
  evaluator = std::pair(worker_id{1}, incarnation{1});
  const auto found = the_only();
  EXPECT_EQ(found.role, worker_role({1}));
  EXPECT_EQ(found.phase, stall_phase::evaluating);
}

TEST_F(stall_finder_test, another_reason_is_told_and_the_same_one_is_not_told_again) {
  worker_statuses[0].activity = {.phase = stall_phase::computing, .slot = {0}};
  EXPECT_EQ(pass(3s).size(), 1U);
  worker_statuses[0].activity.phase = stall_phase::pushing;
  const auto found = the_only(3s);
  EXPECT_EQ(found.phase, stall_phase::pushing);
  EXPECT_GE(found.after_us, 3000000U) << "since the step before";
}

TEST_F(stall_finder_test, a_step_ends_it_and_that_is_told_once) {
  the_only();
  for (auto& [index, status] : shard_statuses) status.applied = {8};
  const auto over = the_only(500ms);
  EXPECT_TRUE(over.is_over);
  EXPECT_EQ(over.version, version_id{7});
  EXPECT_EQ(over.role, worker_role({0}));
  EXPECT_GE(over.after_us, 1500000U);
}

TEST_F(stall_finder_test, a_step_without_a_stall_is_no_news) {
  pass(500ms);
  for (auto& [index, status] : shard_statuses) status.applied = {8};
  EXPECT_TRUE(pass(500ms).empty());
}

TEST_F(stall_finder_test, at_the_last_version_nobody_is_waited_for) {
  for (auto& [index, status] : shard_statuses) status.applied = {100};
  EXPECT_TRUE(pass(5s).empty());
}

TEST_F(stall_finder_test, before_all_were_heard_training_has_not_begun) {
  shard_statuses.erase(1);
  EXPECT_TRUE(pass(5s).empty());
}

TEST_F(stall_finder_test, an_own_pause_is_nobody_elses_stall) {
  pass(100ms);
  now += 10s;
  workers.excuse_silence(now);
  finder.excuse(now);
  EXPECT_TRUE(pass(900ms).empty());
}

} // namespace
} // namespace dlrun::data_dispatcher
