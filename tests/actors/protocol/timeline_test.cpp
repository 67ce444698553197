#include "actors/protocol/timeline.hpp"

#include <gtest/gtest.h>

namespace dlrun::protocol {
namespace {

TEST(history, what_comes_from_outside_is_looked_at) {
  EXPECT_TRUE(is_valid(first_history()));
  EXPECT_FALSE(is_valid({}));
  EXPECT_FALSE(is_valid({{{1}, {0}, 0, {}}}));
  EXPECT_FALSE(is_valid({{{0}, {0}, 0, {}}, {{2}, {5}, 0, {}}, {{2}, {5}, 0, {}}}));
  history huge = first_history();
  huge.front().parked.resize(parked_slots_max + 1);
  EXPECT_FALSE(is_valid(huge));
}

TEST(history, what_a_timeline_made_is_good_up_to_the_lowest_branch_since) {
  const history all{{{0}, {0}, 0, {}}, {{1}, {9}, 0, {}}, {{2}, {4}, 0, {}}, {{3}, {7}, 0, {}}};
  EXPECT_EQ(branched_since(all, {0}), version_id{4});
  EXPECT_EQ(branched_since(all, {2}), version_id{7});
  EXPECT_EQ(branched_since(all, {3}), std::nullopt);
}

TEST(history, a_change_of_the_specification_holds_from_its_branch_on_whatever_is_rewound) {
  auto all = extended(first_history(), {{1}, {6}, 1, {}});
  EXPECT_EQ(revision_at(all, {5}), 0U);
  EXPECT_EQ(revision_at(all, {6}), 1U);
  all = extended(all, {{2}, {3}, 1, {}}); // a crash: steps 3 to 5 are done again as they were
  EXPECT_EQ(revision_at(all, {4}), 0U);
  EXPECT_EQ(revision_at(all, {8}), 1U);
  all = extended(all, {{3}, {2}, 2, {}}); // the operator again
  EXPECT_EQ(revision_at(all, {1}), 0U);
  EXPECT_EQ(revision_at(all, {4}), 2U);
}

TEST(history, parked_slots_are_those_of_all_entries) {
  const auto all =
      extended(extended(first_history(), {{1}, {2}, 0, {{{7}, {1}}}}), {{2}, {1}, 0, {{{3}, {0}}}});
  EXPECT_EQ(parked_slots(all), (std::vector<parked_slot>{{{3}, {0}}, {{7}, {1}}}));
}

TEST(history, is_bounded_and_loses_neither_changes_nor_parked_slots_nor_low_branches) {
  auto all = extended(first_history(), {{1}, {40}, 1, {}});
  all = extended(all, {{2}, {3}, 1, {{{5}, {0}}}});
  for (std::uint64_t timeline = 3; timeline < 600; ++timeline)
    all = extended(all, {{timeline}, {timeline}, 1, {}});
  EXPECT_TRUE(is_valid(all));
  EXPECT_EQ(all.size(), history_entries_max);
  EXPECT_EQ(branched_since(all, {0}), version_id{3});
  EXPECT_EQ(revision_at(all, {39}), 0U);
  EXPECT_EQ(revision_at(all, {40}), 1U);
  EXPECT_EQ(parked_slots(all), (std::vector<parked_slot>{{{5}, {0}}}));
  EXPECT_EQ(newest_timeline(all), timeline_id{599});
}

} // namespace
} // namespace dlrun::protocol
