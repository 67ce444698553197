// A PS shard that is to be on another host next (R37): what it does before it ends, and when it
// stays.
#include "actors/ps_shard/move_order.hpp"
#include "tests/actors/ps_shard/durable_core_fixture.hpp"

namespace dlrun::ps_shard {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class a_shard_that_is_to_move : public durable_core {
protected:
  ps_shard_actions make(std::uint64_t step) {
    push(shard, step);
    return shard.on_applied({step});
  }

  ps_shard_core shard{config(durability::snapshots), {}};
};

TEST_F(a_shard_that_is_to_move, ends_at_once_where_there_is_a_log) {
  EXPECT_THAT(core.on_move(false), IsEmpty());
  EXPECT_EQ(core.on_move(true), (ps_shard_actions{end_in_order{}}));
}

TEST_F(a_shard_that_is_to_move, stands_still_until_its_version_is_committed) {
  make(0);
  EXPECT_THAT(only<take_snapshot>(shard.on_move(true)), SizeIs(1));
  EXPECT_TRUE(waits_for_store(shard));
  EXPECT_THAT(only<apply>(push(shard, 1)), IsEmpty());
  EXPECT_THAT(only<end_in_order>(shard.on_tick()), IsEmpty());
  const auto out = shard.on_snapshot_durable({0}, {1});
  EXPECT_THAT(only<apply>(out), IsEmpty());
  EXPECT_THAT(only<end_in_order>(out), SizeIs(1));
}

/// R8, R12: then no other shard needs the version before, or its norm. That may take a step.
TEST_F(a_shard_that_is_to_move, waits_for_all_gradients_of_the_next_step_which_is_no_wait_for_its_store) {
  make(0);
  shard.on_move(true);
  EXPECT_THAT(only<end_in_order>(shard.on_snapshot_durable({0}, {1})), IsEmpty());
  EXPECT_FALSE(waits_for_store(shard));
  shard.on_push(gradient(1, 0, 1), {next_value++});
  EXPECT_THAT(only<end_in_order>(shard.on_push(gradient(1, 1, 2), {next_value++})), SizeIs(1));
}

TEST_F(a_shard_that_is_to_move, finishes_the_step_that_it_is_at) {
  push(shard, 0);
  EXPECT_THAT(shard.on_move(true), IsEmpty());
  EXPECT_THAT(only<take_snapshot>(shard.on_applied({0})), SizeIs(1));
}

TEST_F(a_shard_that_is_to_move, is_told_again_without_harm) {
  make(0);
  shard.on_move(true);
  EXPECT_THAT(shard.on_move(true), IsEmpty());
}

/// Else training would stand still for those too.
TEST_F(a_shard_that_is_to_move, trains_on_until_its_copy_has_the_snapshots_that_were_begun_before) {
  shard.on_name_snapshot({{0}, {1}});
  make(0);
  shard.on_name_snapshot({{0}, {2}});
  make(1);
  EXPECT_THAT(only<take_snapshot>(shard.on_move(true)), IsEmpty());
  EXPECT_TRUE(shard.look().move.is_wanted());
  EXPECT_FALSE(waits_for_store(shard));
  EXPECT_THAT(only<apply>(push(shard, 2)), SizeIs(1));
  shard.on_applied({2});
  EXPECT_THAT(only<take_snapshot>(shard.on_snapshot_durable({0}, {1})), IsEmpty());
  EXPECT_THAT(only<apply>(push(shard, 3)), SizeIs(1));
  shard.on_applied({3});
  const auto orders = only<take_snapshot>(shard.on_snapshot_durable({0}, {2}));
  ASSERT_THAT(orders, SizeIs(1));
  EXPECT_EQ(orders[0].version, version_id{4});
  EXPECT_THAT(only<apply>(push(shard, 4)), IsEmpty());
}

/// What is begun meanwhile is not waited for: it would never end.
TEST_F(a_shard_that_is_to_move, does_not_train_on_for_snapshots_that_are_begun_meanwhile) {
  shard.on_name_snapshot({{0}, {1}});
  make(0);
  shard.on_move(true);
  shard.on_name_snapshot({{0}, {2}});
  EXPECT_THAT(only<take_snapshot>(make(1)), SizeIs(1));
  shard.on_snapshot_durable({0}, {1});
  EXPECT_TRUE(waits_for_store(shard));
  EXPECT_THAT(only<apply>(push(shard, 2)), IsEmpty());
  EXPECT_THAT(only<end_in_order>(shard.on_snapshot_durable({0}, {2})), SizeIs(1));
}

TEST_F(a_shard_that_is_to_move, does_not_stand_for_as_long_as_its_disk_is_full) {
  make(0);
  shard.on_move(true);
  EXPECT_THAT(only<end_in_order>(shard.on_snapshot_failed({0}, {1})), SizeIs(1));
}

TEST_F(a_shard_that_is_to_move, does_not_end_for_a_snapshot_that_fails_while_it_trains) {
  shard.on_name_snapshot({{0}, {1}});
  make(0);
  shard.on_move(true);
  EXPECT_THAT(only<end_in_order>(shard.on_snapshot_failed({0}, {1})), IsEmpty());
  EXPECT_THAT(only<take_snapshot>(shard.on_tick()), SizeIs(1)) << "now it stands still";
}

/// No gradient of a next step will say that all others have come to it.
TEST_F(a_shard_that_is_to_move, stays_when_it_has_the_last_version) {
  auto last = config(durability::snapshots);
  last.steps = 1;
  ps_shard_core one(last, {});
  push(one, 0);
  one.on_applied({0}); // of which there is a snapshot whoever asks
  one.on_move(true);
  EXPECT_THAT(only<end_in_order>(one.on_snapshot_durable({0}, {1})), IsEmpty());
  EXPECT_THAT(only<end_in_order>(one.on_tick()), IsEmpty());
}

// ---- it stays

TEST_F(a_shard_that_is_to_move, goes_on_at_once_when_it_is_not_to_any_more) {
  make(0);
  shard.on_move(true);
  ASSERT_THAT(only<apply>(push(shard, 1)), IsEmpty());
  EXPECT_THAT(only<apply>(shard.on_move(false)), SizeIs(1));
  EXPECT_FALSE(shard.look().move.is_wanted());
  shard.on_applied({1});
  EXPECT_THAT(only<end_in_order>(shard.on_snapshot_durable({0}, {1})), IsEmpty());
  EXPECT_THAT(shard.on_move(false), IsEmpty()) << "told again";
}

TEST_F(a_shard_that_is_to_move, may_be_told_so_again_later) {
  make(0);
  shard.on_move(true);
  shard.on_move(false);
  make(1);
  EXPECT_THAT(only<take_snapshot>(shard.on_move(true)), IsEmpty()) << "one is being made";
  EXPECT_THAT(only<take_snapshot>(shard.on_snapshot_durable({0}, {1})), SizeIs(1));
}

TEST_F(a_shard_that_is_to_move, goes_back_with_all_others_and_moves_from_there) {
  shard.on_name_snapshot({{0}, {1}});
  make(0);
  shard.on_snapshot_durable({0}, {1});
  make(1);
  shard.on_move(true); // of version 2
  shard.on_rewind(going_back(1));
  auto loaded = restored(1);
  loaded.history = going_back(1).history;
  loaded.restorable = {{{0}, {0}}, {{1}, {1}}};
  loaded.snapshots = {{1}};
  EXPECT_THAT(only<end_in_order>(shard.on_rewound(loaded)), IsEmpty());
  EXPECT_THAT(only<end_in_order>(shard.on_snapshot_durable({0}, {2})), IsEmpty());
  auto again = gradient(1, 0, 2);
  again.timeline = {1};
  EXPECT_THAT(only<end_in_order>(shard.on_push(again, {next_value++})), SizeIs(1));
}

// ---- how long it is told so

TEST(move_order, holds_until_the_agent_says_otherwise) {
  move_order order;
  const protocol::time_point now{};
  EXPECT_FALSE(order.holds(now));
  order.on_answer(true, now);
  EXPECT_TRUE(order.holds(now));
  order.on_answer(false, now);
  EXPECT_FALSE(order.holds(now));
}

TEST(move_order, holds_no_more_when_nobody_answers) {
  move_order order;
  const protocol::time_point now{};
  order.on_answer(true, now);
  order.on_answer(true, now + move_order::silence_max);
  EXPECT_TRUE(order.holds(now + 2 * move_order::silence_max - std::chrono::milliseconds(1)));
  EXPECT_FALSE(order.holds(now + 2 * move_order::silence_max));
}

} // namespace
} // namespace dlrun::ps_shard
