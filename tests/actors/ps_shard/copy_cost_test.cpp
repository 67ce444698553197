#include "actors/ps_shard/copy_cost.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::ps_shard {
namespace {

using protocol::durability;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::uint64_t record_bytes = 2'500'000;

protocol::copy_figures figures(std::uint32_t busy_permille, std::uint32_t waited_permille) {
  return {.steps = 10, .busy_permille = busy_permille, .waited_permille = waited_permille};
}

TEST(a_copy, is_slow_if_steps_wait_for_a_tenth_of_the_time_or_the_link_is_taken_for_half_of_it) {
  EXPECT_FALSE(is_slow_copy(figures(499, 99), false));
  EXPECT_TRUE(is_slow_copy(figures(0, 100), false));
  EXPECT_TRUE(is_slow_copy(figures(500, 0), false));
}

TEST(a_copy, that_was_slow_is_so_until_it_takes_half_as_much) {
  EXPECT_TRUE(is_slow_copy(figures(0, 50), true));
  EXPECT_TRUE(is_slow_copy(figures(250, 0), true));
  EXPECT_FALSE(is_slow_copy(figures(249, 49), true));
}

class copy_cost_test : public testing::Test {
protected:
  /// What passes in a step, the whole of which is sent.
  struct step_of {
    protocol::duration computed, sent, awaited;
  };

  std::optional<copy_cost::word> note(bool is_on_the_way, bool is_awaited, protocol::duration lasts) {
    auto news = cost.note({counts, is_on_the_way, is_awaited, applied, bytes}, now);
    // Nothing longer than a tick passes without a word.
    for (const auto end = now + lasts; now < end;) {
      now = std::min(now + milliseconds(100), end);
      if (auto more = cost.note({counts, is_on_the_way, is_awaited, applied, bytes}, now)) news = more;
    }
    return news;
  }
  /// @returns what was told, all of it
  std::vector<copy_cost::word> train(int steps, const step_of& one) {
    std::vector<copy_cost::word> told;
    const auto add = [&](const std::optional<copy_cost::word>& news) {
      if (news) told.push_back(*news);
    };
    for (int step = 0; step < steps; ++step) {
      add(note(false, false, one.computed));
      add(note(true, false, one.sent - one.awaited));
      add(note(true, true, one.awaited));
      bytes += record_bytes;
      ++applied.value;
    }
    return told;
  }

  copy_cost cost{protocol::keeper_role({1}), durability::every_step};
  protocol::time_point now{seconds(1000)};
  bool counts = true;
  version_id applied{};
  std::uint64_t bytes = 0;

  static constexpr step_of quick{milliseconds(90), milliseconds(10), milliseconds(0)};
  static constexpr step_of slow{milliseconds(100), milliseconds(900), milliseconds(800)};
};

TEST_F(copy_cost_test, that_is_small_is_told_once_with_its_figures) {
  const auto told = train(1000, quick);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_FALSE(told[0].is_slow);
  EXPECT_EQ(told[0].text,
            "the copy of ps_shard 1 costs little: it is sent 2.50 MB a step at 250.00 MB/s, which takes "
            "10 % of the time, and steps of 100.0 ms wait for it 0 % of the time");
  const auto& measured = cost.figures();
  EXPECT_EQ(measured.bytes_per_step, record_bytes);
  EXPECT_EQ(measured.busy_permille, 100U);
  EXPECT_EQ(measured.waited_permille, 0U);
  EXPECT_EQ(measured.step_us, 100'000U);
  EXPECT_FALSE(measured.is_slow);
  EXPECT_EQ(cost.waited(), protocol::duration{0});
}

TEST_F(copy_cost_test, that_is_large_is_told_with_what_would_save_it_and_what_that_gives_up) {
  const auto told = train(30, slow);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_TRUE(told[0].is_slow);
  EXPECT_THAT(told[0].text,
              StartsWith("the copy of ps_shard 1 costs much: it is sent 2.50 MB a step at 2.78 MB/s, "
                         "which takes 90 % of the time, and steps of 1000.0 ms wait for it 80 % of"));
  for (const auto* part :
       {"It is kept, since without it a host", "durability.log: snapshots", "durability.replicas: 1"})
    EXPECT_THAT(told[0].text, HasSubstr(part));
  EXPECT_EQ(cost.waited(), milliseconds(800) * 30);
}

TEST_F(copy_cost_test, of_snapshots_names_how_to_make_fewer_of_them) {
  cost = copy_cost{protocol::keeper_role({1}), durability::snapshots};
  const auto told = train(30, slow);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_THAT(told[0].text, HasSubstr("a larger durability.max_recovery makes fewer snapshots"));
  EXPECT_THAT(told[0].text, testing::Not(HasSubstr("durability.log")));
}

TEST_F(copy_cost_test, that_changes_is_told_again) {
  train(200, quick);
  const auto worse = train(30, slow);
  ASSERT_EQ(worse.size(), 1U);
  EXPECT_TRUE(worse[0].is_slow);
  const auto better = train(300, quick);
  ASSERT_EQ(better.size(), 1U);
  EXPECT_FALSE(better[0].is_slow);
}

TEST_F(copy_cost_test, is_not_told_of_steps_that_are_too_few) {
  EXPECT_TRUE(train(3, {seconds(1), seconds(10), seconds(10)}).empty());
  EXPECT_EQ(cost.figures().steps, 0U);
  EXPECT_EQ(train(3, {seconds(1), seconds(10), seconds(10)}).size(), 1U);
}

/// What is sent while a copy is being filled says nothing of what a step costs.
TEST_F(copy_cost_test, is_measured_while_the_copy_counts_and_anew_for_the_next_one) {
  counts = false;
  EXPECT_TRUE(train(50, slow).empty());
  EXPECT_EQ(cost.waited(), milliseconds(800) * 50) << "steps wait for the end of a fill too";
  counts = true;
  EXPECT_EQ(train(200, quick).size(), 1U);
  counts = false;
  train(1, quick);
  EXPECT_EQ(cost.figures().steps, 0U);
  counts = true;
  EXPECT_EQ(train(200, quick).size(), 1U) << "the next copy may be behind another link";
}

TEST_F(copy_cost_test, does_not_count_before_the_first_step_when_there_is_no_work) {
  note(false, false, seconds(60));
  train(200, quick);
  EXPECT_EQ(cost.figures().step_us, 100'000U);
}

TEST_F(copy_cost_test, waits_for_bytes_since_with_snapshots_there_are_none_for_long) {
  for (int step = 0; step < 100; ++step, ++applied.value) EXPECT_FALSE(note(false, false, seconds(1)));
  bytes += record_bytes;
  EXPECT_TRUE(note(false, false, milliseconds(1)));
  EXPECT_EQ(cost.figures().steps, 99U);
  EXPECT_EQ(cost.figures().bytes_per_step, record_bytes / 99);
}

TEST_F(copy_cost_test, begins_anew_where_training_goes_back) {
  train(50, slow); // the second window is under way
  const auto before = cost.figures();
  applied.value -= 3;
  train(4, slow);
  EXPECT_EQ(cost.figures(), before);
}

/// This process was stopped: nobody knows what was on its way meanwhile.
TEST_F(copy_cost_test, does_not_count_a_pause_of_this_process) {
  cost.note({true, true, true, applied, bytes}, now);
  now += seconds(100);
  train(200, quick);
  EXPECT_EQ(cost.waited(), protocol::duration{0});
  EXPECT_EQ(cost.figures().step_us, 100'000U);
}

} // namespace
} // namespace dlrun::ps_shard
