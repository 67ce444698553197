#include "base/version_set.hpp"

#include <gtest/gtest.h>

namespace dlrun::base {
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

} // namespace
} // namespace dlrun::base
