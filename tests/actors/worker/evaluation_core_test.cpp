#include "actors/worker/evaluation_core.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::worker {
namespace {

using testing::IsEmpty;

constexpr protocol::evaluate first{{0}, {8}};
constexpr protocol::evaluate second{{0}, {12}};

protocol::evaluated result_of(const protocol::evaluate& order) {
  protocol::evaluated made;
  made.timeline = order.timeline;
  made.version = order.version;
  return made;
}

/// Of a job with two PS shards.
class evaluation_core_test : public testing::Test {
protected:
  /// Both parts of `order` come.
  evaluation_actions collect(const protocol::evaluate& order) {
    core.on_order(order, order.timeline);
    core.on_part({0}, order);
    return core.on_part({1}, order);
  }
  evaluation_core core{2};
};

TEST_F(evaluation_core_test, what_is_ordered_is_computed_when_all_parts_are_there_and_answered) {
  EXPECT_EQ(core.on_order(first, {0}),
            (evaluation_actions{get_snapshot_part{{0}, first}, get_snapshot_part{{1}, first}}));
  EXPECT_THAT(core.on_part({1}, first), IsEmpty());
  EXPECT_EQ(core.on_part({0}, first), (evaluation_actions{run_evaluation{first}}));
  EXPECT_TRUE(core.is_running());
  EXPECT_THAT(core.on_order(first, {0}), IsEmpty()) << "it is at it";
  EXPECT_EQ(core.on_result(result_of(first)), (evaluation_actions{send_evaluated{result_of(first)}}));
}

TEST_F(evaluation_core_test, a_repeated_order_asks_for_what_is_missing_and_repeats_a_lost_answer) {
  core.on_order(first, {0});
  core.on_part({0}, first);
  EXPECT_EQ(core.on_order(first, {0}), (evaluation_actions{get_snapshot_part{{1}, first}}));
  core.on_part({1}, first);
  core.on_result(result_of(first));
  EXPECT_EQ(core.on_order(first, {0}), (evaluation_actions{send_evaluated{result_of(first)}}));
}

TEST_F(evaluation_core_test, parts_of_another_version_are_not_mixed_in) {
  core.on_order(first, {0});
  core.on_part({0}, first);
  EXPECT_FALSE(core.wants({0}, first)) << "it is there";
  core.on_order(second, {0});
  EXPECT_TRUE(core.wants({0}, second));
  EXPECT_FALSE(core.wants({1}, first));
  EXPECT_FALSE(core.wants({2}, second));
  EXPECT_THAT(core.on_part({1}, first), IsEmpty());
  EXPECT_THAT(core.on_part({1}, second), IsEmpty()) << "that of shard 0 is of the other version";
}

TEST_F(evaluation_core_test, an_order_of_another_timeline_than_the_workers_is_ignored) {
  EXPECT_THAT(core.on_order(first, {1}), IsEmpty());
}

TEST_F(evaluation_core_test, what_runs_is_cancelled_for_another_order_and_its_result_dropped) {
  collect(first);
  EXPECT_EQ(core.on_order(second, {0}), (evaluation_actions{cancel_evaluation{}}));
  EXPECT_FALSE(core.wants({0}, second)) << "the memory is being read";
  EXPECT_THAT(core.on_result(result_of(first)), IsEmpty());
  EXPECT_EQ(core.on_order(second, {0}),
            (evaluation_actions{get_snapshot_part{{0}, second}, get_snapshot_part{{1}, second}}));
}

TEST_F(evaluation_core_test, after_a_failure_everything_is_fetched_again) {
  collect(first);
  EXPECT_THAT(core.on_result(std::nullopt), IsEmpty());
  EXPECT_EQ(core.on_order(first, {0}).size(), 2U);
  core.on_part({0}, first);
  EXPECT_EQ(core.on_part({1}, first), (evaluation_actions{run_evaluation{first}}));
}

TEST_F(evaluation_core_test, a_version_is_evaluated_again_on_a_newer_timeline) {
  collect(first);
  core.on_result(result_of(first));
  const protocol::evaluate again{{1}, {8}};
  EXPECT_EQ(core.on_order(again, {1}).size(), 2U);
}

} // namespace
} // namespace dlrun::worker
