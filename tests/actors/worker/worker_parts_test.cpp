// The parts of worker_core, each alone: what is kept, what is in memory, where the shards stand.
#include "actors/worker/kept_gradients.hpp"

#include "actors/worker/doorbell_attempts.hpp"
#include "actors/worker/parameter_parts.hpp"
#include "actors/worker/shard_connections.hpp"
#include "actors/worker/shard_contacts.hpp"
#include "actors/worker/shard_standings.hpp"
#include "actors/worker/slot_warnings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::worker {
namespace {

using protocol::make_slot_range;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr protocol::time_point begin{std::chrono::hours(1)};

kept_gradients::key key(std::uint64_t step, std::uint32_t first, std::uint32_t end) {
  return {{step}, make_slot_range(first, end)};
}

TEST(kept_gradients, what_is_missing_below_a_node_is_found_from_the_left) {
  kept_gradients kept;
  kept.add(key(0, 1, 2), begin);
  const auto missing = [&](std::uint64_t step) {
    return kept.first_missing({step}, make_slot_range(0, 4), {});
  };
  EXPECT_EQ(missing(0), make_slot_range(0, 1));
  EXPECT_EQ(missing(1), make_slot_range(0, 4)) << "of another step nothing is kept";
  kept.add(key(0, 0, 1), begin);
  EXPECT_EQ(missing(0), make_slot_range(2, 4));
  kept.add(key(0, 2, 4), begin);
  EXPECT_EQ(missing(0), std::nullopt);
}

TEST(kept_gradients, a_node_that_is_parked_in_whole_is_not_missing) {
  const kept_gradients kept;
  const protocol::parked_slots_list parked{{{0}, {0}}, {{0}, {1}}};
  EXPECT_EQ(kept.first_missing({0}, make_slot_range(0, 2), parked), std::nullopt);
  EXPECT_EQ(kept.first_missing({0}, make_slot_range(0, 4), parked), make_slot_range(0, 4))
      << "a part of it is left";
  EXPECT_EQ(kept.first_missing({0}, make_slot_range(0, 1), {{{0}, {0}, 3}}), make_slot_range(0, 1))
      << "only a record is left out";
}

TEST(kept_gradients, drops_what_all_are_past_and_then_the_highest_steps) {
  kept_gradients kept;
  for (std::uint64_t step = 0; step < 5; ++step) kept.add(key(step, 0, 2), begin);
  EXPECT_THAT(kept.drop([](step_id step) { return step.value < 1; }, 2),
              ElementsAre(key(0, 0, 2), key(3, 0, 2), key(4, 0, 2)));
  EXPECT_THAT(kept.from({0}), ElementsAre(key(1, 0, 2), key(2, 0, 2)));
}

TEST(kept_gradients, is_overdue_once_and_only_from_the_open_step_on) {
  kept_gradients kept;
  kept.add(key(3, 0, 2), begin);
  kept.add(key(4, 0, 2), begin);
  kept.add(key(5, 0, 2), begin + milliseconds(10));
  EXPECT_THAT(kept.take_overdue({4}, begin), ElementsAre(key(4, 0, 2)));
  EXPECT_THAT(kept.take_overdue({4}, begin), IsEmpty());
  EXPECT_THAT(kept.take_overdue({3}, begin + milliseconds(10)), ElementsAre(key(3, 0, 2), key(5, 0, 2)));
}

TEST(parameter_parts, one_fetch_a_shard_is_on_the_way_whatever_happens_meanwhile) {
  parameter_parts parts{milliseconds(100)};
  const fetch_part order{{0}, {1}, {0}, {4}};
  parts.begin(order);
  parts.clear();
  EXPECT_FALSE(parts.may_fetch({0}, {5}));
  EXPECT_TRUE(parts.may_fetch({1}, {5}));
  EXPECT_FALSE(parts.end({{0}, {2}, {0}, {4}})) << "of another start";
  EXPECT_TRUE(parts.end(order));
  EXPECT_FALSE(parts.end(order));
  EXPECT_TRUE(parts.may_fetch({0}, {5}));
}

TEST(parameter_parts, what_was_refused_is_asked_for_again_later_or_when_the_shard_has_moved) {
  parameter_parts parts{milliseconds(100)};
  EXPECT_FALSE(parts.take({{0}, {1}, {0}, {4}}, fetch_outcome::gone, begin));
  parts.on_tick(begin + milliseconds(99));
  EXPECT_FALSE(parts.may_fetch({0}, {4}));
  EXPECT_TRUE(parts.may_fetch({0}, {5}));
  parts.on_tick(begin + milliseconds(100));
  EXPECT_TRUE(parts.may_fetch({0}, {4}));
  parts.take({{0}, {1}, {0}, {4}}, fetch_outcome::gone, begin);
  parts.forget_refusals({0});
  EXPECT_TRUE(parts.may_fetch({0}, {4}));
}

TEST(parameter_parts, a_version_may_be_in_the_other_buffer_and_is_refused_when_it_is_in_neither) {
  parameter_parts parts{milliseconds(100)};
  const fetch_part order{{0}, {1}, {0}, {4}};
  EXPECT_TRUE(parts.take(order, fetch_outcome::elsewhere, begin));
  EXPECT_TRUE(parts.may_fetch({0}, {4}));
  EXPECT_FALSE(parts.take(order, fetch_outcome::elsewhere, begin));
  EXPECT_FALSE(parts.may_fetch({0}, {4}));
  EXPECT_TRUE(parts.take(order, fetch_outcome::elsewhere, begin)) << "begins anew";
  EXPECT_TRUE(parts.take(order, fetch_outcome::taken, begin));
  EXPECT_TRUE(parts.holds({0}, {4}));
}

TEST(parameter_parts, what_lacks_the_version_may_have_it_in_its_other_buffer_unless_both_are_seen) {
  EXPECT_EQ(outcome_of({.is_reachable = false}), fetch_outcome::gone);
  EXPECT_EQ(outcome_of({.is_reachable = true}), fetch_outcome::elsewhere);
  EXPECT_EQ(outcome_of({.is_reachable = true, .shows_all = true}), fetch_outcome::gone);
}

TEST(parameter_parts, a_version_that_is_there_is_copied_unless_it_is_read_where_it_is) {
  EXPECT_EQ(outcome_of({.is_reachable = true, .has_version = true}), std::nullopt);
  EXPECT_EQ(outcome_of({.is_reachable = true, .has_version = true, .is_read_in_place = true}),
            fetch_outcome::taken);
}

TEST(parameter_parts, versions_out_of_use_are_dropped_of_all_shards) {
  parameter_parts parts{milliseconds(100)};
  const auto take = [&](std::uint32_t shard, std::uint64_t version) {
    parts.take({{shard}, {1}, {0}, {version}}, fetch_outcome::taken, begin);
  };
  for (const std::uint64_t version : {3, 4, 5}) take(0, version);
  take(1, 4);
  parts.drop_outside({4}, {5});
  EXPECT_FALSE(parts.holds({0}, {3}));
  EXPECT_TRUE(parts.holds({0}, {5}));
  parts.drop(version_id{4});
  EXPECT_FALSE(parts.holds_any({1}));
  EXPECT_TRUE(parts.holds_any({0}));
}

class shard_connections_test : public testing::Test {
protected:
  static protocol::directory_entry entry(std::uint32_t shard, std::uint64_t start, bool joined = true) {
    return {protocol::ps_shard_role({shard}), {start}, joined, {}};
  }
  std::vector<protocol::directory_entry> hear(std::vector<protocol::directory_entry> entries) {
    return connections.on_directory({{1}, 1, std::move(entries)});
  }
  shard_connections connections{2, milliseconds(100)};
};

TEST_F(shard_connections_test, each_start_that_has_joined_is_connected_to_once) {
  EXPECT_THAT(hear({entry(0, 1), entry(1, 1, false), {protocol::worker_role({0}), {1}, true, {}}}),
              ElementsAre(entry(0, 1)));
  EXPECT_THAT(hear({entry(0, 1), entry(1, 1)}), ElementsAre(entry(1, 1)));
  EXPECT_TRUE(connections.on_connected({0}, {1}));
  EXPECT_THAT(hear({entry(0, 1), entry(1, 1)}), IsEmpty());
  EXPECT_THAT(hear({entry(7, 1)}), IsEmpty()) << "the job has no such shard";
}

TEST_F(shard_connections_test, an_attempt_that_failed_is_made_again_after_a_while) {
  hear({entry(0, 1)});
  EXPECT_TRUE(connections.on_unconnected({0}, {1}, begin));
  EXPECT_THAT(connections.on_tick(begin + milliseconds(99)), IsEmpty());
  EXPECT_THAT(connections.on_tick(begin + milliseconds(100)), ElementsAre(entry(0, 1)));
  EXPECT_THAT(connections.on_tick(begin + milliseconds(300)), IsEmpty()) << "it is under way";
}

TEST_F(shard_connections_test, a_connection_that_is_lost_is_made_again_after_a_while) {
  hear({entry(0, 1)});
  EXPECT_TRUE(connections.on_connected({0}, {1}));
  EXPECT_THAT(connections.on_tick(begin), IsEmpty());
  EXPECT_TRUE(connections.on_unconnected({0}, {1}, begin));
  EXPECT_THAT(connections.on_tick(begin + milliseconds(99)), IsEmpty());
  EXPECT_THAT(connections.on_tick(begin + milliseconds(100)), ElementsAre(entry(0, 1)));
}

TEST_F(shard_connections_test, a_newer_start_ends_the_attempts_at_the_one_before) {
  hear({entry(0, 1)});
  EXPECT_THAT(hear({entry(0, 2)}), ElementsAre(entry(0, 2)));
  EXPECT_FALSE(connections.on_connected({0}, {1}));
  EXPECT_FALSE(connections.on_unconnected({0}, {1}, begin));
  EXPECT_THAT(connections.on_tick(begin + milliseconds(300)), IsEmpty());
  EXPECT_THAT(hear({entry(0, 1)}), IsEmpty()) << "it is older";
}

class doorbell_attempts_test : public testing::Test {
protected:
  /// The shard's first start has spoken, and is asked for a doorbell.
  doorbell_attempts_test() {
    EXPECT_TRUE(attempts.follow({0}, {1}));
    EXPECT_TRUE(attempts.begin({0}, begin));
  }
  doorbell_attempts attempts;
};

TEST_F(doorbell_attempts_test, one_attempt_is_under_way_at_a_time) {
  EXPECT_FALSE(attempts.begin({0}, begin + 2 * doorbell_attempts::pause)) << "nobody has answered yet";
  EXPECT_TRUE(attempts.follow({1}, {1}));
  EXPECT_TRUE(attempts.begin({1}, begin)) << "of another shard";
}

TEST_F(doorbell_attempts_test, who_refuses_is_asked_again_after_a_pause) {
  attempts.on_failed({0}, {1}, begin);
  EXPECT_FALSE(attempts.begin({0}, begin + doorbell_attempts::pause - milliseconds(1)));
  EXPECT_TRUE(attempts.begin({0}, begin + doorbell_attempts::pause));
}

TEST_F(doorbell_attempts_test, one_that_is_lost_is_asked_for_again_but_not_sooner_than_after_the_pause) {
  attempts.on_connected({0}, {1}, begin);
  EXPECT_FALSE(attempts.begin({0}, begin + 2 * doorbell_attempts::pause)) << "it is there";
  attempts.on_lost({0}, {1});
  EXPECT_FALSE(attempts.begin({0}, begin + doorbell_attempts::pause - milliseconds(1)));
  EXPECT_TRUE(attempts.begin({0}, begin + doorbell_attempts::pause));
}

TEST_F(doorbell_attempts_test, a_newer_start_is_asked_at_once_and_the_one_before_counts_no_more) {
  attempts.on_failed({0}, {1}, begin);
  EXPECT_TRUE(attempts.follow({0}, {2}));
  EXPECT_TRUE(attempts.begin({0}, begin));
  EXPECT_FALSE(attempts.follow({0}, {1}));
  attempts.on_failed({0}, {1}, begin);
  attempts.on_lost({0}, {1});
  EXPECT_FALSE(attempts.begin({0}, begin + 2 * doorbell_attempts::pause)) << "that of the newer is under way";
}

class shard_standings_test : public testing::Test {
protected:
  auto hear(std::uint32_t shard, std::uint64_t applied, std::uint64_t committed, std::uint64_t start = 1) {
    protocol::shard_state state;
    state.shard = {shard};
    state.incarnation = {start};
    state.applied = {applied};
    state.committed = {committed};
    return shards.hear(state);
  }
  shard_standings shards{2};
};

TEST_F(shard_standings_test, the_lowest_version_is_known_when_all_were_heard) {
  hear(0, 5, 5);
  EXPECT_EQ(shards.lowest(), std::nullopt);
  hear(1, 4, 4);
  EXPECT_EQ(shards.lowest(), version_id{4});
}

TEST_F(shard_standings_test, versions_of_a_start_only_grow_and_a_newer_start_takes_them_back) {
  EXPECT_TRUE(hear(0, 5, 4)->is_new_start);
  EXPECT_FALSE(hear(0, 4, 4)->has_moved()) << "late";
  EXPECT_EQ(shards.find({0})->applied, version_id{5});
  EXPECT_TRUE(hear(0, 3, 3, 2)->is_new_start);
  EXPECT_EQ(shards.find({0})->applied, version_id{3});
  EXPECT_EQ(hear(0, 9, 9, 1), std::nullopt) << "of the older start";
}

TEST_F(shard_standings_test, all_are_past_a_step_when_it_is_committed_or_with_snapshots_applied) {
  hear(0, 5, 5);
  hear(1, 5, 4);
  EXPECT_TRUE(shards.are_past({3}, protocol::durability::every_step));
  EXPECT_FALSE(shards.are_past({4}, protocol::durability::every_step));
  EXPECT_TRUE(shards.are_past({4}, protocol::durability::snapshots));
}

TEST(slot_warnings, an_order_names_what_is_left_out_and_tried_and_not_read_ahead) {
  slot_warnings warnings;
  warnings.set_parked({{{2}, {1}, 7}, {{2}, {5}}, {{3}, {0}}});
  warnings.set_suspects({{{2}, {0}}, {{3}, {1}}, {{3}, {4}}});
  const auto order = warnings.order_of({1}, {2}, make_slot_range(0, 4));
  EXPECT_THAT(order.parked, ElementsAre(protocol::parked_slot{{2}, {1}, 7}));
  EXPECT_THAT(order.suspects, ElementsAre(protocol::suspect_slot{{2}, {0}}));
  EXPECT_THAT(order.not_ahead, ElementsAre(slot_id{0}, slot_id{1}));
}

TEST(shard_contacts, what_is_pushed_is_due_again_after_a_while_and_at_once_to_a_new_start) {
  shard_contacts contacts{milliseconds(100)};
  EXPECT_TRUE(contacts.is_push_due({0}, begin)) << "nothing was pushed yet";
  contacts.on_pushed({0}, begin);
  EXPECT_FALSE(contacts.is_push_due({0}, begin + milliseconds(99)));
  EXPECT_TRUE(contacts.is_push_due({1}, begin + milliseconds(99)));
  EXPECT_TRUE(contacts.is_push_due({0}, begin + milliseconds(100)));
  contacts.on_heard({0}, false, begin + milliseconds(1));
  EXPECT_FALSE(contacts.is_push_due({0}, begin + milliseconds(2))) << "the start that it was pushed to";
  contacts.on_heard({0}, true, begin + milliseconds(2));
  EXPECT_TRUE(contacts.is_push_due({0}, begin + milliseconds(2)));
}

TEST(shard_contacts, a_shard_is_silent_when_it_was_not_heard_for_a_while) {
  shard_contacts contacts{milliseconds(100)};
  EXPECT_TRUE(contacts.is_silent({0}, begin));
  contacts.on_heard({0}, true, begin);
  contacts.on_pushed({0}, begin + milliseconds(50));
  EXPECT_FALSE(contacts.is_silent({0}, begin + milliseconds(99)));
  EXPECT_TRUE(contacts.is_silent({0}, begin + milliseconds(100)));
}

TEST(shard_contacts, a_shard_is_asked_once_in_a_while_but_at_once_over_a_new_connection) {
  shard_contacts contacts{milliseconds(100)};
  EXPECT_TRUE(contacts.begin_pull({0}, begin));
  EXPECT_FALSE(contacts.begin_pull({0}, begin + milliseconds(99)));
  EXPECT_TRUE(contacts.begin_pull({1}, begin + milliseconds(99)));
  EXPECT_TRUE(contacts.begin_pull({0}, begin + milliseconds(100)));
  contacts.on_connected({0});
  EXPECT_TRUE(contacts.begin_pull({0}, begin + milliseconds(101)));
}

} // namespace
} // namespace dlrun::worker
