#include "persistence/version_ranges.hpp"

#include <gtest/gtest.h>

namespace dlrun::persistence {
namespace {

step_set steps_of(std::initializer_list<step_range> ranges) {
  step_set steps;
  for (const auto& range : ranges)
    for (auto step = range.first; step < range.end; ++step.value) steps.add(step);
  return steps;
}

std::vector<base::version_range> restorable(std::vector<version_id> bases, const step_set& steps) {
  return restorable_versions(bases, steps);
}

using ranges = std::vector<base::version_range>;

TEST(version_ranges, version_0_is_always_there) { EXPECT_EQ(restorable({}, {}), (ranges{{{0}, {0}}})); }

TEST(version_ranges, the_log_leads_on_from_each_base_as_far_as_it_has_no_gap) {
  const auto steps = steps_of({{{0}, {5}}, {{7}, {9}}, {{20}, {30}}});
  EXPECT_EQ(restorable({}, steps), (ranges{{{0}, {5}}}));
  EXPECT_EQ(restorable({{7}}, steps), (ranges{{{0}, {5}}, {{7}, {9}}}));
  EXPECT_EQ(restorable({{8}, {9}, {25}}, steps), (ranges{{{0}, {5}}, {{8}, {9}}, {{25}, {30}}}));
  EXPECT_EQ(restorable({{3}, {10}}, steps), (ranges{{{0}, {5}}, {{10}, {10}}}));
  EXPECT_EQ(restorable({{5}, {6}}, steps), (ranges{{{0}, {5}}, {{6}, {6}}}));
}

TEST(version_ranges, steps_are_cut_from_both_ends) {
  auto steps = steps_of({{{0}, {5}}, {{7}, {9}}});
  steps.cut_below({3});
  EXPECT_EQ(steps.ranges(), (std::vector<step_range>{{{3}, {5}}, {{7}, {9}}}));
  steps.cut_from({8});
  EXPECT_EQ(steps.ranges(), (std::vector<step_range>{{{3}, {5}}, {{7}, {8}}}));
  steps.cut_from({7});
  EXPECT_EQ(steps.ranges(), (std::vector<step_range>{{{3}, {5}}}));
  steps.cut_below({5});
  EXPECT_TRUE(steps.ranges().empty());
  steps.add({9});
  EXPECT_TRUE(steps.contains({9}));
  EXPECT_FALSE(steps.contains({8}));
}

TEST(version_ranges, a_version_is_found_in_its_range) {
  const ranges some{{{0}, {0}}, {{4}, {6}}};
  EXPECT_TRUE(contains(some, {0}));
  EXPECT_FALSE(contains(some, {3}));
  EXPECT_TRUE(contains(some, {6}));
  EXPECT_FALSE(contains(some, {7}));
}

TEST(version_ranges_death, steps_are_added_in_order) {
  auto steps = steps_of({{{0}, {5}}});
  EXPECT_DEATH(steps.add({4}), "step 4 comes after step 4");
}

} // namespace
} // namespace dlrun::persistence
