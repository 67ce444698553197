#include "actors/agent/report_intake.hpp"

#include <gtest/gtest.h>

namespace dlrun::agent {
namespace {

TEST(report_intake, puts_parts_together_and_gives_the_whole_once) {
  report_intake intake;
  EXPECT_EQ(intake.add({{3}, 0, 6, "abc"}).end, 3U);
  EXPECT_EQ(intake.take_whole(), std::nullopt);
  EXPECT_EQ(intake.add({{3}, 3, 6, "def"}).end, 6U);
  EXPECT_EQ(intake.take_whole(), "abcdef");
  EXPECT_EQ(intake.take_whole(), std::nullopt);
}

TEST(report_intake, a_part_that_comes_twice_or_out_of_place_adds_nothing) {
  report_intake intake;
  intake.add({{3}, 0, 9, "abc"});
  EXPECT_EQ(intake.add({{3}, 6, 9, "ghi"}).end, 3U) << "tells where to go on";
  EXPECT_EQ(intake.add({{3}, 3, 9, "def"}).end, 6U);
  EXPECT_EQ(intake.add({{3}, 3, 9, "def"}).end, 6U);
  EXPECT_EQ(intake.add({{3}, 6, 9, "ghi"}).end, 9U);
  EXPECT_EQ(intake.take_whole(), "abcdefghi");
}

TEST(report_intake, a_newer_coordinator_replaces_what_an_older_one_said) {
  report_intake intake;
  intake.add({{3}, 0, 6, "abc"});
  EXPECT_EQ(intake.add({{4}, 3, 6, "xyz"}).end, 0U) << "it has to begin";
  EXPECT_EQ(intake.add({{4}, 0, 3, "new"}).end, 3U);
  EXPECT_NE(intake.add({{3}, 3, 6, "def"}).failure, "");
  EXPECT_EQ(intake.take_whole(), "new");
}

TEST(report_intake, is_asked_for_again_when_its_answer_was_lost) {
  report_intake intake;
  intake.add({{3}, 0, 3, "abc"});
  EXPECT_EQ(intake.take_whole(), "abc");
  EXPECT_EQ(intake.add({{3}, 0, 3, "abc"}).end, 3U);
  EXPECT_EQ(intake.take_whole(), "abc") << "written once more";
}

TEST(report_intake, sizes_are_checked_before_memory_is_taken) {
  report_intake intake;
  EXPECT_NE(intake.add({{3}, 0, report_intake::bytes_max + 1, "a"}).failure, "");
  EXPECT_NE(intake.add({{3}, 0, 2, "abc"}).failure, "") << "more than it says";
}

} // namespace
} // namespace dlrun::agent
