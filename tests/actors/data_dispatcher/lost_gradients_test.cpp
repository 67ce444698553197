#include "actors/data_dispatcher/lost_gradients.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::data_dispatcher {
namespace {

using protocol::make_slot_range;
using protocol::ps_shard_role;
using protocol::worker_role;
using testing::ElementsAre;
using testing::HasSubstr;

protocol::shard_status standing_at(std::uint32_t shard, std::uint64_t applied, bool serves_previous = true) {
  protocol::shard_status status;
  status.shard = {shard};
  status.applied = {applied};
  status.durable.serves_previous = serves_previous;
  return status;
}

shard_statuses two(std::uint64_t first, std::uint64_t second, bool serves_previous = true) {
  return {{{0}, standing_at(0, first, serves_previous)}, {{1}, standing_at(1, second, serves_previous)}};
}

std::uint32_t two_slots(step_id) { return 2; }

TEST(lost_gradients, one_version_apart_is_computed_again_from_the_version_before) {
  EXPECT_TRUE(find_stuck(two(5, 5), false).empty());
  EXPECT_TRUE(find_stuck(two(5, 6), false).empty());
  EXPECT_EQ(find_stuck(two(5, 6, false), false).gradients, (std::set<stuck_steps::lacking>{{{0}, {5}}}));
}

TEST(lost_gradients, further_apart_only_the_newest_step_can_be_computed_again) {
  EXPECT_EQ(find_stuck(two(5, 7), false).gradients, (std::set<stuck_steps::lacking>{{{0}, {5}}}));
}

TEST(lost_gradients, a_norm_that_nobody_can_give_is_missed_too) {
  auto shards = two(5, 6);
  shards.at({1}).durable.norms_from = {6};
  EXPECT_EQ(find_stuck(shards, true).norms, (std::set<stuck_steps::lacking>{{{0}, {5}}}));
  EXPECT_TRUE(find_stuck(shards, false).empty());
}

TEST(lost_gradients, of_a_shard_far_behind_the_first_steps_are_enough_to_know) {
  EXPECT_EQ(find_stuck(two(0, 1'000'000), false).gradients.size(), 64U);
}

/// PS shard 0 lacks step 5, which 1 does not serve any more; workers 0 and 1 are heard.
class gradient_search_test : public testing::Test {
protected:
  void answer(std::uint32_t worker, std::vector<protocol::step_slots> slots, std::uint64_t timeline = 0) {
    search.on_kept({{worker}, {{1}, 0}, {timeline}, 9, std::move(slots)}, {});
  }
  void answer_shards() {
    for (auto& [id, status] : shards) {
      status.probe = 9;
      search.on_shard(status);
    }
  }
  std::optional<std::string> verdict(std::vector<protocol::parked_slot> parked = {}) {
    return search.verdict(shards, true, parked, two_slots);
  }

  shard_statuses shards = two(5, 7);
  gradient_search search{9, find_stuck(shards, true), {{{0}, {1}}, {{1}, {1}}}, 2};
};

TEST_F(gradient_search_test, asks_all_workers_and_only_then_all_shards) {
  EXPECT_THAT(search.waits_for(), ElementsAre(worker_role({0}), worker_role({1})));
  answer_shards(); // too early
  answer(0, {});
  EXPECT_THAT(search.waits_for(), ElementsAre(worker_role({1})));
  answer(1, {});
  EXPECT_THAT(search.waits_for(), ElementsAre(ps_shard_role({0}), ps_shard_role({1})));
  answer_shards();
  EXPECT_TRUE(search.complete());
}

TEST_F(gradient_search_test, does_not_wait_for_who_is_not_heard_any_more) {
  search.keep_workers({{{0}, {1}}, {{1}, {2}}});
  EXPECT_THAT(search.waits_for(), ElementsAre(worker_role({0}))) << "the new start of worker 1 keeps nothing";
}

TEST_F(gradient_search_test, an_answer_to_another_search_or_of_an_older_start_does_not_count) {
  search.on_kept({{0}, {{1}, 0}, {}, 8, {}}, {});
  search.on_kept({{0}, {{7}, 0}, {}, 9, {}}, {});
  EXPECT_EQ(search.waits_for().size(), 2U);
}

TEST_F(gradient_search_test, nothing_is_lost_when_every_slot_is_kept_held_or_parked) {
  answer(0, {{{5}, make_slot_range(0, 1)}});
  answer(1, {});
  EXPECT_THAT(verdict().value(), HasSubstr("ps_shard 0 lacks step 5, and nobody has the gradient of slot 1"));
  EXPECT_EQ(verdict({{{5}, {1}}}), std::nullopt);
  shards.at({0}).durable.held = {{{5}, make_slot_range(1, 2)}};
  EXPECT_EQ(verdict(), std::nullopt);
}

TEST_F(gradient_search_test, what_a_worker_keeps_of_another_timeline_is_of_no_use) {
  answer(0, {{{5}, make_slot_range(0, 2)}}, 4);
  answer(1, {});
  EXPECT_TRUE(verdict().has_value());
}

TEST_F(gradient_search_test, what_was_not_stuck_before_or_is_not_after_does_not_count) {
  answer(0, {});
  answer(1, {});
  shards = two(6, 8); // the gradient came from somewhere; now step 6 is missing, which was not asked about
  EXPECT_EQ(verdict(), std::nullopt);
}

TEST_F(gradient_search_test, a_lost_norm_is_lost_whatever_is_kept) {
  shards.at({1}).durable.norms_from = {6};
  gradient_search other(9, find_stuck(shards, true), {}, 2);
  EXPECT_THAT(other.verdict(shards, true, {{{5}, {0}}, {{5}, {1}}}, two_slots).value(), HasSubstr("norm"));
}

} // namespace
} // namespace dlrun::data_dispatcher
