#include "tests/actors/data_dispatcher/timeline_keeper_fixture.hpp"

namespace dlrun::data_dispatcher {
namespace {

using protocol::extended;
using protocol::first_history;
using protocol::make_slot_range;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// ---- lost gradients

TEST_F(timeline_keeper_test, decides_nothing_before_all_shards_have_reported) {
  EXPECT_THAT(hear(status(1, 6)), IsEmpty());
  keeper.on_shard_lost({1});
  EXPECT_THAT(hear(status(0, 4)), IsEmpty());
}

TEST_F(timeline_keeper_test, when_a_shard_lacks_what_nobody_can_compute_workers_are_asked_and_then_shards) {
  const auto probes = sent<protocol::probe>(hear_both(4, 6));
  ASSERT_EQ(probes.size(), 1U);
  EXPECT_EQ(probes[0].to, protocol::worker_role({0}));
  EXPECT_THAT(tick(milliseconds(100)), IsEmpty());
  EXPECT_EQ(sent<protocol::probe>(tick(milliseconds(100))).size(), 1U) << "asked again";
  EXPECT_EQ(sent<protocol::probe>(answer(probes)).size(), 2U);
}

TEST_F(timeline_keeper_test, while_workers_may_not_have_joined_yet_nothing_is_called_lost) {
  keeper.set_workers({}, false);
  EXPECT_THAT(sent<protocol::probe>(hear_both(4, 6)), IsEmpty());
}

TEST_F(timeline_keeper_test, a_lost_gradient_is_a_rewind_to_the_newest_version_that_all_can_restore) {
  const auto decided = lose_a_gradient();
  ASSERT_EQ(only<journal_course>(decided).size(), 1U);
  EXPECT_THAT(sent<protocol::rewind>(decided), IsEmpty()) << "the journal comes first";
  EXPECT_THAT(tick(milliseconds(1000)), IsEmpty()) << "and nothing else is ordered meanwhile";
  const auto after = journaled(decided);
  const auto starts = told<protocol::timeline_started>(after);
  ASSERT_EQ(starts.size(), 1U);
  EXPECT_EQ(starts[0].branch, version_id{4});
  EXPECT_EQ(starts[0].steps_redone, 2U);
  EXPECT_THAT(starts[0].reason, HasSubstr("ps_shard 0 lacks step 4"));
  const auto rewinds = sent<protocol::rewind>(after);
  ASSERT_EQ(rewinds.size(), 2U);
  EXPECT_EQ(rewinds[0].message.timeline, timeline_id{1});
  EXPECT_EQ(rewinds[0].message.history, course.history);
  EXPECT_EQ(keeper.timeline(), timeline_id{1});
}

TEST_F(timeline_keeper_test, nothing_is_rewound_when_a_worker_keeps_it) {
  const auto probes = sent<protocol::probe>(hear_both(4, 6));
  const auto asked = sent<protocol::probe>(answer(probes, {{{4}, make_slot_range(0, 2)}}));
  auto last = status(0, 4);
  last.probe = asked.at(0).message.id;
  hear(last);
  last = status(1, 6);
  last.probe = asked.at(0).message.id;
  EXPECT_THAT(only<journal_course>(hear(last)), IsEmpty());
  EXPECT_EQ(sent<protocol::probe>(tick(milliseconds(200))).size(), 1U)
      << "looked at again as long as it lasts";
}

TEST_F(timeline_keeper_test, shards_are_told_until_they_are_there) {
  journaled(lose_a_gradient());
  EXPECT_EQ(sent<protocol::rewind>(tick(milliseconds(250))).size(), 2U);
  hear(status(0, 4, {}, course.history));
  const auto again = sent<protocol::rewind>(tick(milliseconds(250)));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].to, protocol::ps_shard_role({1}));
  hear(status(1, 4, {}, course.history));
  EXPECT_THAT(sent<protocol::rewind>(tick(milliseconds(250))), IsEmpty());
}

TEST_F(timeline_keeper_test, a_shard_that_slept_over_several_rewinds_goes_back_to_the_lowest) {
  journaled_course journal;
  journal.history = extended(extended(first_history(), {{1}, {3}, 0, {}}), {{2}, {5}, 0, {}});
  keeper = timeline_keeper(config(), journal);
  hear(status(0, 7));
  const auto rewinds = sent<protocol::rewind>(hear(status(1, 6, {}, journal.history)));
  ASSERT_EQ(rewinds.size(), 1U);
  EXPECT_EQ(rewinds[0].message.version, version_id{3});
}

TEST_F(timeline_keeper_test, a_shard_that_cannot_go_back_there_makes_all_go_back_further) {
  journaled_course journal;
  journal.history = extended(first_history(), {{1}, {5}, 0, {}});
  keeper = timeline_keeper(config(), journal);
  hear(status(0, 0)); // its disk was lost
  const auto starts = told<protocol::timeline_started>(journaled(hear(status(1, 6, {}, journal.history))));
  ASSERT_EQ(starts.size(), 1U);
  EXPECT_EQ(starts[0].timeline, timeline_id{2});
  EXPECT_EQ(starts[0].branch, version_id{0});
}

// ---- snapshots

TEST_F(timeline_keeper_test, snapshots_are_named_when_they_are_due) {
  auto late = status(1, 5);
  late.durable.replay_us = 300'000;
  hear(status(0, 5));
  const auto actions = hear(late);
  EXPECT_EQ(sent<protocol::name_snapshot>(actions).size(), 2U);
  EXPECT_EQ(only<decision_made>(actions).at(0).event, "snapshot-named");
}

TEST_F(timeline_keeper_test, the_floor_leaves_one_common_snapshot_to_fall_back_on) {
  EXPECT_THAT(sent<protocol::floor>(hear_both(7, 7, {{2}})), IsEmpty());
  const auto floors = sent<protocol::floor>(hear_both(7, 7, {{2}, {4}, {6}}));
  ASSERT_EQ(floors.size(), 2U);
  EXPECT_EQ(floors[0].message, (protocol::floor{{0}, {4}, me}));
  EXPECT_THAT(sent<protocol::floor>(hear_both(7, 7, {{4}, {6}})), IsEmpty()) << "obeyed";
}

TEST_F(timeline_keeper_test, the_floor_stays_below_what_is_to_be_evaluated) {
  const auto floors = sent<protocol::floor>(hear_both(14, 14, {{2}, {6}, {9}, {12}, {14}}));
  ASSERT_EQ(floors.size(), 2U);
  EXPECT_EQ(floors[0].message.version, version_id{6});
}

TEST_F(timeline_keeper_test, a_snapshot_that_one_shard_lacks_counts_for_nothing) {
  hear(status(0, 7, {{2}, {4}, {6}}));
  EXPECT_THAT(sent<protocol::floor>(hear(status(1, 7, {{4}}))), IsEmpty());
}

// ---- parked slots, the operator

TEST_F(timeline_keeper_test, a_parked_slot_is_journaled_and_then_gone_back_for) {
  hear_both(7, 6);
  const auto first = park(4, 1);
  EXPECT_EQ(only<decision_made>(first).at(0).event, "slot-parked");
  const auto second = journaled(first);
  EXPECT_THAT(course.parked, ElementsAre(protocol::parked_slot{{4}, {1}}));
  EXPECT_THAT(told<protocol::timeline_started>(second), IsEmpty());
  const auto starts = told<protocol::timeline_started>(journaled(second));
  ASSERT_EQ(starts.size(), 1U);
  EXPECT_EQ(starts[0].branch, version_id{4});
  EXPECT_THAT(course.history.back().parked, ElementsAre(protocol::parked_slot{{4}, {1}}));
  EXPECT_THAT(park(4, 1), IsEmpty()) << "told again";
}

TEST_F(timeline_keeper_test, of_a_slot_that_has_too_few_records_left_none_is_trained) {
  hear_both(7, 6);
  data_dispatcher_actions out;
  keeper.park({{4}, {1}, 3}, now, out);
  journaled(journaled(out));
  EXPECT_THAT(course.history.back().parked, ElementsAre(protocol::parked_slot{{4}, {1}, 3}));
  hear(status(0, 4, {}, course.history));
  hear(status(1, 4, {}, course.history));
  out.clear();
  keeper.park({{4}, {1}, 0}, now, out);
  journaled(journaled(out));
  hear(status(0, 4, {}, course.history));
  hear(status(1, 4, {}, course.history));
  EXPECT_THAT(course.parked,
              ElementsAre(protocol::parked_slot{{4}, {1}, 0}, protocol::parked_slot{{4}, {1}, 3}))
      << "two are left, as many as it takes";
  out.clear();
  keeper.park({{4}, {1}, 1}, now, out);
  journaled(out);
  EXPECT_TRUE(protocol::is_parked(course.parked, {4}, {1}));
}

TEST_F(timeline_keeper_test, a_slot_of_a_step_to_come_costs_nothing) {
  hear_both(6, 6);
  const auto starts = told<protocol::timeline_started>(journaled(journaled(park(12, 0))));
  ASSERT_EQ(starts.size(), 1U);
  EXPECT_EQ(starts[0].branch, version_id{6});
  EXPECT_EQ(starts[0].steps_redone, 0U);
}

TEST_F(timeline_keeper_test, going_back_on_purpose_pins_the_version_first) {
  hear_both(7, 7, {{2}, {6}});
  const auto pins = sent<protocol::pin>(go_back(4, 1));
  ASSERT_EQ(pins.size(), 2U);
  EXPECT_EQ(pins[0].message, (protocol::pin{{0}, me, {4}}));
  auto pinned = status(0, 7, {{2}, {6}});
  pinned.durable.has_pin = true;
  pinned.durable.pinned_by = me;
  pinned.durable.pinned = {4};
  EXPECT_THAT(only<journal_course>(hear(pinned)), IsEmpty());
  pinned.shard = {1};
  const auto starts = told<protocol::timeline_started>(journaled(hear(pinned)));
  ASSERT_EQ(starts.size(), 1U);
  EXPECT_EQ(starts[0].branch, version_id{4});
  EXPECT_EQ(revision_at(course.history, {4}), 1U);
  EXPECT_EQ(revision_at(course.history, {3}), 0U);
  EXPECT_THAT(go_back(4, 1), IsEmpty()) << "that revision is in force";
}

TEST_F(timeline_keeper_test, who_goes_back_on_purpose_looks_for_no_gradient) {
  go_back(2, 1);
  const auto actions = hear_both(4, 6, {{2}});
  EXPECT_THAT(sent<protocol::probe>(actions), IsEmpty()) << "it would be a rewind on the way to another";
  EXPECT_EQ(sent<protocol::pin>(actions).size(), 2U);
}

TEST_F(timeline_keeper_test, a_version_that_nobody_has_is_taken_for_the_greatest_below_it) {
  const auto pins = sent<protocol::pin>((hear_both(7, 6, {{2}, {6}}), go_back(1000, 1)));
  ASSERT_EQ(pins.size(), 2U);
  EXPECT_EQ(pins[0].message.version, version_id{6});
}

TEST_F(timeline_keeper_test, a_slot_that_is_to_be_left_out_is_gone_back_for_but_only_once) {
  hear_both(7, 7, {{2}, {6}});
  const auto pinned_version = [&](std::vector<protocol::parked_slot> skip, std::uint64_t revision) {
    data_dispatcher_actions out;
    keeper.go_back({{1000}, revision, std::move(skip)}, now, out);
    return sent<protocol::pin>(out).at(0).message.version;
  };
  EXPECT_EQ(pinned_version({{{3}, {1}}, {{5}, {0}}}, 1), version_id{3});
  journaled_course journal;
  journal.parked = {{{3}, {1}}};
  journal.history = extended(first_history(), {{1}, {3}, 1, journal.parked});
  keeper = timeline_keeper(config(), journal);
  hear_both(7, 7, {{2}, {6}}, journal.history);
  EXPECT_EQ(pinned_version({{{3}, {1}}, {{5}, {0}}}, 2), version_id{5}) << "3:1 is left out already";
}

// ---- the journal is lost

TEST_F(timeline_keeper_test, a_lost_course_is_taken_from_the_shards_and_begins_far_beyond) {
  journaled_course journal;
  journal.lost = true;
  keeper = timeline_keeper(config(), journal);
  const auto history = extended(first_history(), {{4}, {3}, 2, {{{9}, {0}}}});
  hear(status(0, 6, {}, history));
  const auto starts = told<protocol::timeline_started>(journaled(hear(status(1, 5, {}, history))));
  ASSERT_EQ(starts.size(), 1U);
  EXPECT_EQ(starts[0].timeline, timeline_id{1004});
  EXPECT_EQ(starts[0].branch, version_id{5});
  EXPECT_FALSE(course.lost);
  EXPECT_THAT(course.parked, ElementsAre(protocol::parked_slot{{9}, {0}}));
  EXPECT_EQ(course.history.back().revision, 2U);
}

TEST_F(timeline_keeper_test, a_journal_that_is_behind_its_shards_is_as_good_as_lost) {
  const auto history = extended(first_history(), {{1}, {3}, 0, {}});
  hear(status(0, 6, {}, history));
  const auto starts = told<protocol::timeline_started>(journaled(hear(status(1, 5))));
  ASSERT_EQ(starts.size(), 1U);
  EXPECT_EQ(starts[0].timeline, timeline_id{1001});
  EXPECT_EQ(starts[0].branch, version_id{3});
}

TEST_F(timeline_keeper_test, of_an_older_course_results_that_training_has_gone_back_behind_are_void) {
  journaled_course journal;
  journal.lost = true;
  protocol::evaluated result;
  for (const std::uint64_t version : {2, 4}) {
    result.version = {version};
    journal.evaluations.push_back(result);
  }
  keeper = timeline_keeper(config(), journal);
  const auto history = extended(first_history(), {{1}, {3}, 1, {}});
  hear(status(0, 6, {}, history));
  journaled(hear(status(1, 5, {}, history)));
  ASSERT_EQ(course.evaluations.size(), 1U);
  EXPECT_EQ(course.evaluations[0].version, version_id{2});
}

TEST_F(timeline_keeper_test, a_course_that_is_older_may_still_have_a_timeline_that_no_shard_is_on) {
  journaled_course journal;
  journal.lost = true;
  journal.history = extended(first_history(), {{7}, {3}, 1, {}});
  keeper = timeline_keeper(config(), journal);
  hear(status(0, 6));
  const auto starts = told<protocol::timeline_started>(journaled(hear(status(1, 5))));
  ASSERT_EQ(starts.size(), 1U);
  EXPECT_EQ(starts[0].timeline, timeline_id{1007});
  EXPECT_EQ(course.history.back().revision, 1U);
}

TEST_F(timeline_keeper_test, hostile_statuses_are_ignored) {
  auto without_history = status(0, 5);
  without_history.durable.history.clear();
  hear(without_history);
  auto of_another = status(0, 5);
  of_another.timeline = {3};
  hear(of_another);
  EXPECT_THAT(hear(status(1, 9)), IsEmpty());
}

} // namespace
} // namespace dlrun::data_dispatcher
