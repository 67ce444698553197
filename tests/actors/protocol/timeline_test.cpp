#include "actors/protocol/timeline.hpp"

#include <gtest/gtest.h>

namespace dlrun::protocol {
namespace {

TEST(version_set, neighbours_and_overlaps_become_one_range) {
  version_set set;
  insert(set, {{5}, {6}});
  insert(set, {{1}, {1}});
  insert(set, {{9}, {12}});
  EXPECT_EQ(set, (version_set{{{1}, {1}}, {{5}, {6}}, {{9}, {12}}}));
  insert(set, {{7}, {8}});
  EXPECT_EQ(set, (version_set{{{1}, {1}}, {{5}, {12}}}));
  insert(set, {{0}, {20}});
  EXPECT_EQ(set, (version_set{{{0}, {20}}}));
}

TEST(version_set, what_both_have) {
  EXPECT_EQ(common({{{0}, {0}}, {{4}, {9}}}, {{{0}, {5}}, {{8}, {20}}}),
            (version_set{{{0}, {0}}, {{4}, {5}}, {{8}, {9}}}));
  EXPECT_TRUE(common({{{1}, {2}}}, {{{3}, {4}}}).empty());
}

TEST(version_set, is_cut_above_and_below_and_keeps_version_0) {
  const version_set set{{{0}, {0}}, {{4}, {9}}, {{12}, {15}}};
  EXPECT_EQ(up_to(set, {6}), (version_set{{{0}, {0}}, {{4}, {6}}}));
  EXPECT_EQ(from(set, {6}), (version_set{{{0}, {0}}, {{6}, {9}}, {{12}, {15}}}));
  EXPECT_EQ(from(set, {10}), (version_set{{{0}, {0}}, {{12}, {15}}}));
  EXPECT_EQ(greatest_up_to(set, {11}), version_id{9});
  EXPECT_EQ(greatest_up_to(set, {3}), version_id{0});
  EXPECT_EQ(greatest_up_to({{{4}, {9}}}, {3}), std::nullopt);
  EXPECT_TRUE(contains(set, {13}));
  EXPECT_FALSE(contains(set, {10}));
}

TEST(version_set, is_shown_as_people_write_it) {
  EXPECT_EQ(to_string(version_set{{{0}, {0}}, {{4}, {9}}}), "0, 4 to 9");
  EXPECT_EQ(to_string(version_set{}), "none");
}

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
