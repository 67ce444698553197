#include "base/nearest.hpp"

#include <gtest/gtest.h>
#include <vector>

namespace dlrun::base {
namespace {

TEST(edit_distance, counts_edits) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("epohcs", "epochs"), 1U) << "neighbours swapped";
  EXPECT_EQ(edit_distance("relu", "relu"), 0U);
}

TEST(edit_distance, is_bounded_for_long_texts) {
  EXPECT_EQ(edit_distance(std::string(1 << 20, 'a'), std::string(1 << 20, 'b')), 200U);
}

TEST(hint, offers_a_close_word_or_all_of_them) {
  const std::vector<std::string> words = {"linear", "relu", "flatten"};
  EXPECT_EQ(nearest("leniar", words), "linear");
  EXPECT_EQ(hint("rleu", words), "did you mean \"relu\"?");
  EXPECT_EQ(hint("attention", words), "the nearest is \"flatten\", valid are linear, relu, flatten");
  EXPECT_EQ(hint("x", {}), "no keys are valid here");
}

} // namespace
} // namespace dlrun::base
