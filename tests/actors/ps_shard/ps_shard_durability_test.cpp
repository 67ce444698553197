/// ps_shard_core where state is durable: log, snapshots, floor, rewinds, parked slots, norms.
#include "tests/actors/ps_shard/durable_core_fixture.hpp"

namespace dlrun::ps_shard {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t first_own = first_own_value;

class ps_shard_durability_test : public durable_core {};

// ---- log

TEST_F(ps_shard_durability_test, steps_that_were_logged_together_are_committed_together) {
  auto two_ahead = config();
  two_ahead.early_publish_bound = 2;
  ps_shard_core shard(two_ahead, {});
  push(shard, 0);
  shard.on_applied({0});
  push(shard, 1);
  shard.on_applied({1});
  EXPECT_EQ(shard.on_committed({2}), (ps_shard_actions{release{{1}}, release{{2}}, publish{}}));
  EXPECT_EQ(shard.state().committed, version_id{2});
  EXPECT_THAT(shard.on_committed({2}), IsEmpty()) << "told again";
}

TEST_F(ps_shard_durability_test, what_is_committed_can_be_gone_back_to) {
  train(core, 0);
  train(core, 1);
  EXPECT_EQ(core.status().durable.restorable, (protocol::version_set{{{0}, {2}}}));
}

TEST_F(ps_shard_durability_test, a_record_names_timeline_revision_and_samples) {
  auto found = restored(4);
  found.history = extended(found.history, {{1}, {4}, 7, {}});
  found.ledger.samples_applied = 24;
  ps_shard_core shard(config(), found);
  auto after = protocol::push(gradient(4, 0, 2));
  after.timeline = {1};
  const auto records = only<append>(shard.on_push(after, {1}));
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].timeline, timeline_id{1});
  EXPECT_EQ(records[0].revision, 7U);
  EXPECT_EQ(records[0].ledger.samples_applied, 30U);
}

// ---- snapshots

TEST_F(ps_shard_durability_test, a_version_named_in_time_is_snapshotted_before_the_next_is_applied) {
  core.on_name_snapshot({{0}, {2}});
  EXPECT_THAT(core.status().durable.planned, ElementsAre(version_id{2}));
  EXPECT_THAT(only<take_snapshot>(train(core, 0)), IsEmpty());
  push(core, 1);
  push(core, 2);
  core.on_committed({2});
  const auto actions = core.on_applied({1});
  ASSERT_EQ(actions.size(), 5U);
  EXPECT_EQ(std::get<take_snapshot>(actions[2]).version, version_id{2});
  EXPECT_EQ(std::get<take_snapshot>(actions[2]).ledger.samples_applied, 12U);
  EXPECT_EQ(std::get<apply>(actions[3]).step, step_id{2});
  EXPECT_THAT(core.on_snapshot_durable({0}, {2}), Contains(ps_shard_action{send_status{}}));
  EXPECT_THAT(core.status().durable.snapshots, ElementsAre(version_id{2}));
}

TEST_F(ps_shard_durability_test, a_version_named_too_late_or_on_another_timeline_is_not) {
  train(core, 0);
  core.on_name_snapshot({{0}, {1}});
  core.on_name_snapshot({{1}, {5}});
  core.on_name_snapshot({{0}, {11}});
  EXPECT_THAT(core.status().durable.planned, IsEmpty());
}

TEST_F(ps_shard_durability_test, the_last_version_is_snapshotted_though_nobody_asks) {
  ps_shard_core shard(config(), restored(9));
  EXPECT_EQ(only<take_snapshot>(train(shard, 9)).size(), 1U);
}

TEST_F(ps_shard_durability_test, versions_of_the_specification_that_a_crash_cut_short_are_made_on_restart) {
  auto named = config();
  named.named_snapshots = {{2}, {4}, {8}};
  ps_shard_core shard(named, restored(5, {{4}}));
  const auto orders = only<take_snapshot>(shard.start());
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].version, version_id{2});
}

TEST_F(ps_shard_durability_test, one_that_failed_is_ordered_again_by_timer_when_it_must_be) {
  ps_shard_core shard(config(), restored(9));
  train(shard, 9);
  EXPECT_THAT(only<take_snapshot>(shard.on_tick()), IsEmpty()) << "it is in work";
  shard.on_snapshot_failed({0}, {10});
  EXPECT_EQ(only<take_snapshot>(shard.on_tick()).size(), 1U);
}

TEST_F(ps_shard_durability_test, a_full_pool_of_snapshots_slows_training) {
  auto named = config();
  named.named_snapshots = {{1}, {2}, {3}};
  ps_shard_core shard(named, {});
  train(shard, 0);
  train(shard, 1);
  EXPECT_THAT(only<apply>(push(shard, 2)), IsEmpty());
  EXPECT_EQ(only<apply>(shard.on_snapshot_durable({0}, {1})).size(), 1U);
}

TEST_F(ps_shard_durability_test, without_a_log_the_newest_snapshot_is_what_is_committed) {
  ps_shard_core shard(config(durability::snapshots), {});
  shard.on_name_snapshot({{0}, {1}});
  push(shard, 0);
  const auto actions = shard.on_applied({0});
  EXPECT_THAT(only<append>(actions), IsEmpty());
  EXPECT_EQ(only<take_snapshot>(actions).size(), 1U);
  EXPECT_EQ(shard.state().committed, version_id{0});
  push(shard, 1);
  shard.on_applied({1});
  push(shard, 2);
  shard.on_applied({2});
  EXPECT_EQ(shard.state().applied, version_id{3}) << "no bound holds it";
  EXPECT_THAT(shard.on_snapshot_durable({0}, {1}), Contains(ps_shard_action{publish{}}));
  EXPECT_EQ(shard.state().committed, version_id{1});
  EXPECT_EQ(shard.status().durable.restorable, (protocol::version_set{{{0}, {1}}}));
}

TEST_F(ps_shard_durability_test, an_evaluation_gets_a_snapshot_of_its_own_timeline_only) {
  ps_shard_core shard(config(), restored(6, {{4}}));
  EXPECT_TRUE(shard.has_snapshot({0}, {4}));
  EXPECT_FALSE(shard.has_snapshot({1}, {4}));
  EXPECT_FALSE(shard.has_snapshot({0}, {5}));
}

/// Of ten steps; it goes beyond 2 and 5 only when it is told to.
TEST_F(ps_shard_durability_test, waits_with_the_next_version_until_it_may_go_on) {
  auto gated = config();
  gated.gates = {{2}, {5}};
  ps_shard_core shard(gated, {});
  train(shard, 0);
  train(shard, 1);
  EXPECT_EQ(shard.status().durable.may_reach, version_id{2});
  EXPECT_THAT(only<apply>(push(shard, 2)), IsEmpty());
  EXPECT_THAT(shard.on_go_on({{1}, {5}}), IsEmpty()) << "of another timeline";
  EXPECT_THAT(shard.on_go_on({{0}, {1}}), IsEmpty()) << "by one that knows less";
  EXPECT_EQ(only<apply>(shard.on_go_on({{0}, {5}})).size(), 1U);
  EXPECT_EQ(shard.status().durable.may_reach, version_id{5});
}

TEST_F(ps_shard_durability_test, where_it_stands_it_was_let_come_but_no_further) {
  auto gated = config();
  gated.gates = {{2}, {5}};
  EXPECT_EQ(ps_shard_core(gated, restored(3)).status().durable.may_reach, version_id{5});
  ps_shard_core at_a_gate(gated, restored(5));
  EXPECT_EQ(at_a_gate.status().durable.may_reach, version_id{5});
  EXPECT_THAT(only<apply>(push(at_a_gate, 5)), IsEmpty());
  EXPECT_EQ(ps_shard_core(gated, restored(6)).status().durable.may_reach, evaluation_gate::no_limit);
  at_a_gate.on_go_on({{0}, {10}});
  at_a_gate.on_rewind(going_back(1));
  auto loaded = restored(1);
  loaded.history = going_back(1).history;
  at_a_gate.on_rewound(loaded);
  EXPECT_EQ(at_a_gate.status().durable.may_reach, version_id{2}) << "what was evaluated beyond is void";
}

// ---- floor and pin

TEST_F(ps_shard_durability_test, drops_below_the_floor_of_its_own_timeline_once) {
  ps_shard_core shard(config(), restored(6, {{2}, {4}}));
  EXPECT_THAT(shard.on_floor({{1}, {4}, {1}}), IsEmpty());
  EXPECT_EQ(shard.on_floor({{0}, {4}, {1}}), (ps_shard_actions{drop_below{{4}}}));
  EXPECT_THAT(shard.on_floor({{0}, {4}, {1}}), IsEmpty());
  EXPECT_THAT(shard.status().durable.snapshots, ElementsAre(version_id{4}));
  EXPECT_EQ(shard.status().durable.restorable, (protocol::version_set{{{0}, {0}}, {{4}, {6}}}));
}

TEST_F(ps_shard_durability_test, keeps_the_snapshot_that_the_floor_names) {
  ps_shard_core shard(config(), restored(6, {{2}, {4}}));
  EXPECT_EQ(shard.on_floor({{0}, {4}, {1}, true, {2}}), (ps_shard_actions{drop_below{{4}, version_id{2}}}));
  EXPECT_THAT(shard.status().durable.snapshots, ElementsAre(version_id{2}, version_id{4}));
  EXPECT_TRUE(shard.has_snapshot({0}, {2}));
}

TEST_F(ps_shard_durability_test, shows_what_it_is_asked_to_keep_and_keeps_it) {
  ps_shard_core shard(config(), restored(6, {{2}, {4}}));
  EXPECT_EQ(shard.on_pin({{0}, {3}, {3}}), (ps_shard_actions{send_status{}}));
  const auto shown = shard.status().durable;
  EXPECT_TRUE(shown.has_pin);
  EXPECT_EQ(shown.pinned_by, incarnation{3});
  EXPECT_EQ(shown.pinned, version_id{3});
  EXPECT_EQ(shard.on_floor({{0}, {4}, {3}}), (ps_shard_actions{drop_below{{2}}}));
}

// ---- going back

TEST_F(ps_shard_durability_test, goes_back_takes_nothing_meanwhile_and_announces_itself) {
  train(core, 0);
  train(core, 1);
  push(core, 2); // being applied
  push(core, 3);
  const auto order = going_back(1);
  EXPECT_EQ(core.on_rewind(order), (ps_shard_actions{perform_rewind{{1}, {1}, order.history}}));
  EXPECT_FALSE(core.wants(gradient(2, 0, 2)));
  EXPECT_THAT(core.on_rewind(order), IsEmpty()) << "told again";
  EXPECT_THAT(core.on_applied({2}), IsEmpty()) << "what was in hand is not published";
  auto loaded = restored(1);
  loaded.history = order.history;
  const auto actions = core.on_rewound(loaded);
  EXPECT_EQ(only<release>(actions), (std::vector{release{{3}}, release{{4}}}));
  EXPECT_THAT(actions, Contains(ps_shard_action{publish{}}));
  EXPECT_THAT(actions, Contains(ps_shard_action{send_status{}}));
  EXPECT_EQ(core.timeline(), timeline_id{1});
  EXPECT_EQ(core.state().applied, version_id{1});
  EXPECT_FALSE(core.wants(gradient(1, 0, 2))) << "of the old timeline";
}

/// R16: it was being written when all went back, and its thread is heard late.
TEST_F(ps_shard_durability_test,
       however_a_snapshot_ends_that_was_ordered_before_it_is_none_of_the_new_timeline) {
  core.on_name_snapshot({{0}, {2}});
  train(core, 0);
  ASSERT_THAT(only<take_snapshot>(train(core, 1)), testing::SizeIs(1));
  core.on_rewind(going_back(1));
  auto loaded = restored(1);
  loaded.history = going_back(1).history;
  core.on_rewound(loaded);
  EXPECT_THAT(core.on_snapshot_durable({0}, {2}), IsEmpty());
  core.on_name_snapshot({{1}, {2}});
  auto again = gradient(1, 0, 2);
  again.timeline = {1};
  core.on_push(again, {9});
  core.on_committed({2});
  ASSERT_THAT(only<take_snapshot>(core.on_applied({1})), testing::SizeIs(1));
  core.on_snapshot_durable({0}, {2});
  core.on_snapshot_failed({0}, {2});
  EXPECT_THAT(core.status().durable.snapshots, IsEmpty());
  EXPECT_THAT(core.status().durable.planned, ElementsAre(version_id{2})) << "it is in work";
  core.on_snapshot_durable({1}, {2});
  EXPECT_THAT(core.status().durable.snapshots, ElementsAre(version_id{2}));
}

TEST_F(ps_shard_durability_test, a_step_that_is_done_again_counts_as_redone_and_its_samples_once) {
  train(core, 0);
  train(core, 1);
  core.on_rewind(going_back(1));
  auto loaded = restored(1);
  loaded.history = going_back(1).history;
  loaded.ledger = {.steps_applied = 1, .samples_applied = 6};
  core.on_rewound(loaded);
  auto again = gradient(1, 0, 2);
  again.timeline = {1};
  core.on_push(again, {9});
  core.on_committed({2});
  core.on_applied({1});
  EXPECT_EQ(core.status().ledger, (protocol::applied_ledger{3, 1, 12, 0, 0}));
}

TEST_F(ps_shard_durability_test, what_cannot_be_obeyed_is_answered_with_where_it_stands) {
  train(core, 0);
  EXPECT_EQ(core.on_rewind(going_back(5)), (ps_shard_actions{send_status{}}));
  auto old = going_back(0);
  old.timeline = {0};
  old.history = protocol::first_history();
  EXPECT_EQ(core.on_rewind(old), (ps_shard_actions{send_status{}}));
  auto hostile = going_back(0);
  hostile.history.clear();
  EXPECT_THAT(core.on_rewind(hostile), IsEmpty());
}

TEST_F(ps_shard_durability_test, where_nothing_is_durable_nobody_goes_back) {
  ps_shard_core shard(config(durability::off), {});
  EXPECT_THAT(shard.on_rewind(going_back(0)), IsEmpty());
  EXPECT_TRUE(shard.status().durable.restorable.empty());
}

TEST_F(ps_shard_durability_test, a_probe_is_answered_with_what_is_held_of_open_steps) {
  core.on_push(gradient(0, 0, 1), {1});
  core.on_push(gradient(1, 1, 2), {2});
  EXPECT_EQ(core.on_probe({77}), (ps_shard_actions{send_status{77}}));
  const auto status = core.status(77);
  EXPECT_EQ(status.probe, 77U);
  EXPECT_EQ(status.durable.held,
            (std::vector<protocol::step_slots>{{{0}, make_slot_range(0, 1)}, {{1}, make_slot_range(1, 2)}}));
}

// ---- parked slots

TEST_F(ps_shard_durability_test, a_parked_slot_is_zero_has_no_records_and_is_filled_in) {
  auto found = restored(0);
  found.history = extended(found.history, {{1}, {0}, 0, {{{0}, {1}}}});
  ps_shard_core shard(config(), found);
  EXPECT_EQ(shard.state().parked, (std::vector<protocol::parked_slot>{{{0}, {1}}}));
  auto half = gradient(0, 0, 1);
  half.timeline = {1};
  EXPECT_EQ(shard.on_push(half, {1}).front(), (ps_shard_action{make_zero{{first_own}, {{0}, {1}}}}));
  shard.on_committed({1});
  shard.on_applied({0});
  EXPECT_EQ(shard.status().ledger, (protocol::applied_ledger{1, 0, 3, 0, 0}));
}

TEST_F(ps_shard_durability_test, a_step_of_nothing_but_parked_slots_is_applied_without_a_push) {
  auto found = restored(3);
  found.history = extended(found.history, {{1}, {3}, 0, {{{3}, {0}}, {{3}, {1}}}});
  ps_shard_core shard(config(), found);
  const auto applies = only<apply>(shard.start());
  ASSERT_EQ(applies.size(), 1U);
  EXPECT_EQ(applies[0].step, step_id{3});
}

// ---- norms

TEST_F(ps_shard_durability_test, a_step_is_applied_with_the_norms_of_all_shards) {
  auto coupled = config();
  coupled.combine_norms = [](const std::vector<norm_partials>& all) { return 10 * all[0][0] + all[1][0]; };
  ps_shard_core shard(coupled, {});
  EXPECT_EQ(push(shard, 0), (ps_shard_actions{measure{{0}, {1}}}));
  EXPECT_EQ(shard.on_measured({0}, {4}), (ps_shard_actions{send_norm{{1}, {{0}, {0}, {0}, {4}}}}));
  EXPECT_EQ(shard.on_tick(), (ps_shard_actions{send_norm{{1}, {{0}, {0}, {0}, {4}}},
                                               send_norm_request{{1}, {{0}, {0}, {0}}}}));
  const auto actions = shard.on_norm({{0}, {1}, {0}, {7}});
  ASSERT_EQ(only<apply>(actions).size(), 1U);
  EXPECT_EQ(only<apply>(actions)[0].coupled, 47U);
  EXPECT_EQ(only<append>(actions)[0].coupled, 47U);
  EXPECT_EQ(only<append>(actions)[0].partials, (norm_partials{4}));
  shard.on_committed({1});
  shard.on_applied({0});
  EXPECT_EQ(only<send_norm>(shard.on_norm_request({{0}, {1}, {0}})).size(), 1U) << "for one that lags";
  EXPECT_EQ(shard.status().durable.norms_from, step_id{0});
}

// ---- memory that outlives the process (R36)

TEST_F(ps_shard_durability_test, what_goes_beside_a_version_in_memory_is_told_before_it_is_made) {
  ps_shard_core shard{config(durability::snapshots), restored(0)};
  const auto made = push(shard, 0);
  const auto notes = only<retain>(made);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes.front().step, step_id{0});
  EXPECT_EQ(notes.front().ledger.samples_applied, 6U);
  EXPECT_THAT(only<apply>(made), testing::SizeIs(1));
  EXPECT_TRUE(std::holds_alternative<retain>(made[made.size() - 2])) << "right before apply";
  ps_shard_core logging{config(), restored(0)};
  EXPECT_THAT(only<retain>(push(logging, 0)), IsEmpty());
}

TEST_F(ps_shard_durability_test, a_version_from_memory_is_applied_and_not_committed) {
  auto standing = restored(7, {{3}});
  standing.restorable = {{{0}, {0}}, {{3}, {3}}};
  ps_shard_core shard{config(durability::snapshots), standing};
  EXPECT_EQ(shard.state().applied, version_id{7});
  EXPECT_EQ(shard.state().committed, version_id{3});
  EXPECT_EQ(shard.status().durable.restorable, standing.restorable);
  push(shard, 7);
  EXPECT_THAT(only<publish>(shard.on_applied({7})), testing::SizeIs(1));
  EXPECT_EQ(shard.state().applied, version_id{8});
}

} // namespace
} // namespace dlrun::ps_shard
