/// worker_core where training goes back: timelines, probes, parked slots, what is forgotten when.
#include "actors/worker/worker_core.hpp"

#include "tests/actors/only.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::worker {
namespace {

using protocol::make_slot_range;
using test::only;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr incarnation this_worker{3};

/// A worker of a job with one PS shard, four slots, ten steps; all slots are its own.
class worker_rewind_test : public testing::Test {
protected:
  static worker_core_config config(protocol::durability mode) {
    worker_core_config made;
    made.self = {1};
    made.fence = {this_worker, 77};
    made.steps = 10;
    made.slots_of = [](step_id) { return 4U; };
    made.durability = mode;
    return made;
  }
  worker_actions hear(worker_core& worker, std::uint64_t applied, std::uint64_t committed,
                      std::uint64_t timeline = 0, std::vector<protocol::parked_slot> parked = {}) {
    protocol::shard_state state;
    state.incarnation = {1};
    state.timeline = {timeline};
    state.applied = {applied};
    state.committed = {committed};
    state.serves_previous = applied > 0;
    state.parked = std::move(parked);
    return worker.on_shard_state(state, now);
  }
  worker_actions lease(worker_core& worker, std::uint32_t begin, std::uint32_t end) {
    return worker.on_lease({{1}, ++sequence, this_worker, make_slot_range(begin, end)}, now);
  }
  /// Its parts are there, what is asked for is computed.
  worker_actions compute(worker_core& worker, std::uint64_t version, std::uint64_t timeline = 0) {
    auto actions = worker.on_part({{0}, {1}, {timeline}, {version}}, fetch_outcome::taken, now);
    for (const auto& one : only<compute_gradient>(actions))
      actions = worker.on_computed(one.timeline, one.step, one.slots, now);
    return actions;
  }

  std::uint64_t sequence = 0;
  worker_core logged{config(protocol::durability::every_step)};
  worker_core snapshotted{config(protocol::durability::snapshots)};
  protocol::time_point now{std::chrono::hours(1)};
};

TEST_F(worker_rewind_test, with_a_log_a_step_is_kept_until_it_is_committed) {
  lease(logged, 0, 4);
  hear(logged, 0, 0);
  compute(logged, 0);
  hear(logged, 1, 0);
  EXPECT_THAT(only<send_kept>(logged.on_probe({42}, now)).at(0).message.slots,
              ElementsAre(protocol::step_slots{{0}, make_slot_range(0, 4)}));
  EXPECT_EQ(only<forget_gradient>(hear(logged, 1, 1)).size(), 1U);
}

TEST_F(worker_rewind_test, with_snapshots_only_a_step_is_kept_until_it_is_applied) {
  lease(snapshotted, 0, 4);
  hear(snapshotted, 0, 0);
  compute(snapshotted, 0);
  EXPECT_EQ(only<forget_gradient>(hear(snapshotted, 1, 0)).size(), 1U);
}

TEST_F(worker_rewind_test, tells_at_once_what_it_keeps) {
  lease(logged, 1, 3);
  hear(logged, 0, 0);
  auto actions = compute(logged, 0);
  compute(logged, 0);
  for (const auto& one : only<compute_gradient>(actions)) logged.on_computed({}, one.step, one.slots, now);
  const auto answers = only<send_kept>(logged.on_probe({42}, now));
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].message.probe, 42U);
  EXPECT_EQ(answers[0].message.self.incarnation, this_worker);
  EXPECT_THAT(answers[0].message.slots, ElementsAre(protocol::step_slots{{0}, make_slot_range(1, 3)}))
      << "neighbours are one run";
}

TEST_F(worker_rewind_test, keeps_nothing_of_an_older_timeline) {
  lease(logged, 0, 4);
  hear(logged, 4, 4);
  compute(logged, 4);
  hear(logged, 2, 2, 1);
  const auto answers = only<send_kept>(logged.on_probe({42}, now));
  EXPECT_THAT(answers.at(0).message.slots, IsEmpty());
  EXPECT_EQ(answers.at(0).message.timeline, timeline_id{1});
}

TEST_F(worker_rewind_test, a_parked_slot_is_named_as_zero_in_a_subtree_that_has_others) {
  lease(logged, 0, 4);
  hear(logged, 2, 2, 1, {{{2}, {1}}, {{3}, {0}}});
  const auto orders = only<compute_gradient>(logged.on_part({{0}, {1}, {1}, {2}}, fetch_outcome::taken, now));
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_THAT(orders[0].parked, ElementsAre(protocol::parked_slot{{2}, {1}}));
}

TEST_F(worker_rewind_test, records_of_a_slot_are_left_out_and_suspects_are_tried_and_neither_is_read_ahead) {
  lease(logged, 0, 4);
  protocol::directory directory{{1}, 5, {}, {{{2}, {0}}, {{3}, {3}}, {{9}, {0}}}};
  logged.on_directory(directory, now);
  logged.on_directory({{1}, 4, {}, {}}, now); // late
  hear(logged, 2, 2, 1, {{{2}, {1}, 7}, {{3}, {2}, 0}});
  const auto orders = only<compute_gradient>(logged.on_part({{0}, {1}, {1}, {2}}, fetch_outcome::taken, now));
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_THAT(orders[0].parked, ElementsAre(protocol::parked_slot{{2}, {1}, 7}));
  EXPECT_THAT(orders[0].suspects, ElementsAre(protocol::suspect_slot{{2}, {0}}));
  EXPECT_THAT(orders[0].not_ahead, ElementsAre(slot_id{2}, slot_id{3}));
}

TEST_F(worker_rewind_test, what_is_parked_in_whole_is_left_to_the_shards) {
  lease(logged, 2, 4);
  EXPECT_THAT(only<fetch_part>(hear(logged, 2, 2, 1, {{{2}, {2}}, {{2}, {3}}, {{3}, {2}}, {{3}, {3}}})),
              IsEmpty());
}

TEST_F(worker_rewind_test, asks_on_when_all_is_trained_since_training_may_go_back) {
  lease(logged, 0, 4);
  hear(logged, 10, 10);
  now += std::chrono::milliseconds(150);
  EXPECT_EQ(only<send_pull>(logged.on_tick(now)).size(), 1U);
}

} // namespace
} // namespace dlrun::worker
