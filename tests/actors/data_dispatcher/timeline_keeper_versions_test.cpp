/// What timeline_keeper makes of evaluations: the floor, how far shards may go, the end.
#include "tests/actors/data_dispatcher/timeline_keeper_fixture.hpp"

namespace dlrun::data_dispatcher {
namespace {

using std::chrono::milliseconds;
using testing::IsEmpty;

TEST_F(timeline_keeper_test, the_floor_leaves_the_best_of_what_is_below_it) {
  auto with = config();
  with.evaluations = {.steps = 20, .versions = {{2}, {4}, {8}}, .best = loss};
  journaled_course journal;
  journal.evaluations = {evaluated(2, 5), evaluated(4, 7), evaluated(8, 1)};
  keeper = timeline_keeper(with, journal);
  auto floors = sent<protocol::floor>(hear_both(9, 9, {{2}, {4}, {6}, {8}}));
  ASSERT_EQ(floors.size(), 2U);
  EXPECT_EQ(floors[0].message, (protocol::floor{{0}, {6}, me, true, {2}}));
  auto obeyed = status(0, 9, {{2}, {6}, {8}});
  obeyed.durable.restorable = {{{0}, {0}}, {{2}, {2}}, {{6}, {9}}};
  hear(obeyed);
  obeyed.shard = {1};
  EXPECT_THAT(sent<protocol::floor>(hear(obeyed)), IsEmpty());
  now += milliseconds(1000);
  floors = sent<protocol::floor>(hear_both(14, 14, {{2}, {6}, {10}, {12}}));
  ASSERT_EQ(floors.size(), 2U);
  EXPECT_EQ(floors[1].message, (protocol::floor{{0}, {10}, me, true, {8}})) << "2 is the best no more";
}

// ---- evaluation, the end

TEST_F(timeline_keeper_test,
       an_evaluation_is_due_when_all_have_its_snapshot_and_counts_when_it_is_journaled) {
  hear(status(0, 9, {{8}}));
  EXPECT_FALSE(keeper.evaluation_due());
  hear(status(1, 8, {{8}}));
  ASSERT_TRUE(keeper.evaluation_due());
  EXPECT_EQ(keeper.evaluation_due()->version, version_id{8});
  protocol::evaluated result;
  result.version = {8};
  result.timeline = {4};
  data_dispatcher_actions out;
  keeper.on_evaluated(result, out);
  EXPECT_THAT(out, IsEmpty()) << "of another timeline";
  result.timeline = {0};
  keeper.on_evaluated(result, out);
  EXPECT_FALSE(keeper.evaluation_due());
  EXPECT_EQ(told<protocol::evaluated>(journaled(out)).size(), 1U);
  EXPECT_EQ(course.evaluations.size(), 1U);
}

TEST_F(timeline_keeper_test, a_rewind_below_it_voids_an_evaluation) {
  journaled_course journal;
  protocol::evaluated result;
  result.version = {8};
  journal.evaluations = {result};
  keeper = timeline_keeper(config(), journal);
  hear_both(9, 9, {{8}});
  EXPECT_FALSE(keeper.evaluation_due());
  for (std::uint32_t shard = 0; shard < 2; ++shard) keeper.on_shard_lost({shard});
  keeper.set_workers({}, true);
  hear_both(4, 9);
  auto asked = sent<protocol::probe>(tick(milliseconds(300)));
  auto last = status(0, 4);
  last.probe = asked.at(0).message.id;
  hear(last);
  last = status(1, 9);
  last.probe = asked.at(0).message.id;
  journaled(hear(last));
  EXPECT_THAT(course.evaluations, IsEmpty());
}

TEST_F(timeline_keeper_test, training_is_finished_with_the_last_snapshot_everywhere_and_every_evaluation) {
  hear_both(20, 20, {{8}, {20}});
  EXPECT_FALSE(keeper.finished()) << "version 8 is not evaluated";
  protocol::evaluated result;
  result.version = {8};
  data_dispatcher_actions out;
  keeper.on_evaluated(result, out);
  EXPECT_FALSE(keeper.finished());
  journaled(out);
  EXPECT_TRUE(keeper.finished());
  hear(status(1, 19, {{8}}));
  EXPECT_FALSE(keeper.finished());
}

TEST_F(timeline_keeper_test, shards_are_told_how_far_to_go_until_they_show_it) {
  auto with = config();
  with.evaluations = {.steps = 20, .versions = {{8}, {12}}, .ahead_max = 1};
  keeper = timeline_keeper(with, {});
  auto held = status(0, 8, {{8}});
  held.durable.may_reach = {8};
  hear(held);
  held.shard = {1};
  auto told = sent<protocol::go_on>(hear(held));
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0].message, (protocol::go_on{{0}, {12}}));
  EXPECT_EQ(sent<protocol::go_on>(tick(milliseconds(250))).size(), 2U) << "told again";
  held.durable.may_reach = {12};
  hear(held);
  told = sent<protocol::go_on>(tick(milliseconds(250)));
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].to, protocol::ps_shard_role({0}));
  data_dispatcher_actions out;
  keeper.on_evaluated(evaluated(8, 1), out);
  told = sent<protocol::go_on>(journaled(out));
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[1].message.limit, version_id{20});
}

TEST_F(timeline_keeper_test, training_that_is_stopped_early_is_finished_there) {
  auto with = config();
  with.evaluations = {.steps = 20, .versions = {{4}, {8}, {12}, {20}}, .stopping = stopping_rule{loss, 1, 0}};
  journaled_course journal;
  journal.evaluations = {evaluated(4, 5)};
  keeper = timeline_keeper(with, journal);
  hear_both(8, 8, {{8}});
  EXPECT_FALSE(keeper.finished());
  EXPECT_EQ(keeper.versions().last(), version_id{20});
  data_dispatcher_actions out;
  keeper.on_evaluated(evaluated(8, 6), out);
  journaled(out);
  EXPECT_EQ(keeper.versions().last(), version_id{8});
  EXPECT_TRUE(keeper.finished());
  EXPECT_FALSE(keeper.evaluation_due());
  EXPECT_TRUE(keeper.close({0}));
}

TEST_F(timeline_keeper_test, when_the_job_ends_nobody_goes_back_any_more) {
  journaled_course journal;
  protocol::evaluated result;
  result.version = {8};
  journal.evaluations = {result};
  keeper = timeline_keeper(config(), journal);
  hear_both(20, 19, {{8}});
  EXPECT_FALSE(keeper.close({0})) << "not finished";
  hear_both(20, 20, {{8}, {20}});
  EXPECT_FALSE(keeper.close({1}));
  EXPECT_TRUE(keeper.close({0}));
  EXPECT_TRUE(keeper.close({0})) << "asked again";
  EXPECT_EQ(only<decision_made>(go_back(4, 1)).at(0).event, "going-back-refused");
  EXPECT_THAT(hear(status(0, 3)), IsEmpty());
}

TEST_F(timeline_keeper_test, what_cannot_be_evaluated_any_more_is_given_up_and_named) {
  const auto decided = only<decision_made>(hear_both(20, 20, {{12}, {20}}));
  ASSERT_FALSE(decided.empty());
  EXPECT_EQ(decided[0].event, "evaluation-given-up");
  EXPECT_TRUE(keeper.finished());
}

} // namespace
} // namespace dlrun::data_dispatcher
