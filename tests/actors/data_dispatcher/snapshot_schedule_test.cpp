#include "actors/data_dispatcher/snapshot_schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::data_dispatcher {
namespace {

using protocol::durability;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Of two PS shards, a job of 100,000 steps, at most 500 ms of recovery.
class snapshot_schedule_test : public testing::Test {
protected:
  explicit snapshot_schedule_test(durability mode = durability::every_step)
      : schedule({mode, 100'000}) {
    for (std::uint32_t shard = 0; shard < 2; ++shard) shards[{shard}].shard = {shard};
  }
  void stand_at(std::uint64_t applied, std::uint64_t replay_ms = 0) {
    for (auto& [id, shard] : shards) {
      shard.applied = {applied};
      shard.durable.replay_us = 1000 * replay_ms;
    }
  }
  snapshot_naming after(milliseconds time, std::uint64_t newest_common = 0) {
    now += time;
    return schedule.decide(shards, {newest_common}, now);
  }

  snapshot_schedule schedule;
  shard_statuses shards;
  protocol::time_point now{std::chrono::hours(1)};
};

struct without_a_log : snapshot_schedule_test {
  without_a_log()
      : snapshot_schedule_test(durability::snapshots) {}
};

TEST_F(snapshot_schedule_test, a_snapshot_is_due_when_the_log_takes_half_of_the_time_to_replay) {
  stand_at(20, 249);
  EXPECT_EQ(after(milliseconds(100)).reason, "");
  stand_at(30, 250);
  const auto named = after(milliseconds(10));
  EXPECT_THAT(named.reason, HasSubstr("250 ms to replay"));
  EXPECT_EQ(named.version, version_id{32});
  EXPECT_THAT(named.to, ElementsAre(ps_shard_id{0}, ps_shard_id{1}));
}

TEST_F(snapshot_schedule_test, the_same_version_is_said_to_who_does_not_plan_it_until_all_have_it) {
  stand_at(30, 300);
  after(milliseconds(0));
  shards[{0}].durable.planned = {{32}};
  const auto again = after(milliseconds(10));
  EXPECT_EQ(again.reason, "") << "logged once";
  EXPECT_EQ(again.version, version_id{32});
  EXPECT_THAT(again.to, ElementsAre(ps_shard_id{1}));
  shards[{1}].durable.planned = {{32}};
  stand_at(40, 300);
  EXPECT_THAT(after(milliseconds(10)).to, IsEmpty());
}

TEST_F(snapshot_schedule_test, who_passed_it_unheard_makes_the_next_be_named_further_ahead) {
  stand_at(30, 300);
  after(milliseconds(0));
  stand_at(40, 300);
  const auto next = after(milliseconds(10));
  EXPECT_NE(next.reason, "");
  EXPECT_EQ(next.version, version_id{44});
}

TEST_F(snapshot_schedule_test, snapshots_are_spaced_by_four_times_what_one_takes) {
  stand_at(30, 300);
  after(milliseconds(0));
  for (auto& [id, shard] : shards) shard.durable.planned = {{32}};
  stand_at(33, 300);
  after(milliseconds(0)); // all are past it
  for (auto& [id, shard] : shards) shard.durable = {};
  stand_at(60, 300);
  EXPECT_EQ(after(milliseconds(100), 32).reason, "");
  EXPECT_EQ(after(milliseconds(299), 32).reason, "");
  EXPECT_NE(after(milliseconds(1), 32).reason, "");
}

TEST_F(snapshot_schedule_test, a_log_that_is_cheap_to_replay_is_cut_all_the_same) {
  stand_at(30, 1);
  EXPECT_EQ(after(milliseconds(0)).reason, "");
  EXPECT_THAT(after(std::chrono::milliseconds(61'000)).reason, HasSubstr("61 s"));
}

TEST_F(snapshot_schedule_test, close_to_the_end_nothing_is_named_since_the_last_version_is) {
  stand_at(99'998, 300);
  EXPECT_EQ(after(milliseconds(100)).reason, "");
}

TEST_F(snapshot_schedule_test, a_rewind_voids_what_was_named) {
  stand_at(30, 300);
  after(milliseconds(0));
  schedule.restart();
  stand_at(10, 300);
  EXPECT_EQ(after(milliseconds(0)).version, version_id{12});
}

TEST_F(without_a_log, a_snapshot_is_due_when_half_of_the_time_of_training_is_in_none) {
  stand_at(10);
  EXPECT_EQ(after(milliseconds(0)).reason, "");
  EXPECT_EQ(after(milliseconds(249)).reason, "");
  EXPECT_THAT(after(milliseconds(1)).reason, HasSubstr("250 ms of training"));
}

TEST_F(without_a_log, where_nothing_was_trained_nothing_is_due) {
  stand_at(10);
  after(milliseconds(0), 10);
  EXPECT_EQ(after(milliseconds(1000), 10).reason, "");
}

} // namespace
} // namespace dlrun::data_dispatcher
