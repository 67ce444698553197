#include "actors/data_dispatcher/assignment.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

namespace dlrun::data_dispatcher {
namespace {

using protocol::make_slot_range;

std::vector<candidate> equals(std::uint32_t count) {
  std::vector<candidate> all;
  for (std::uint32_t i = 0; i < count; ++i) all.push_back({{i}, {1}, 100});
  return all;
}

/// Each slot has exactly one worker.
void expect_partition(const assignment_decision& decision, std::uint32_t slots) {
  std::vector<int> holders(slots);
  for (const auto& [worker, range] : decision.slots)
    for (auto slot = range.begin; slot < range.end; ++slot.value) ++holders.at(slot.value);
  for (std::uint32_t slot = 0; slot < slots; ++slot) ASSERT_EQ(holders[slot], 1) << "slot " << slot;
}

double step_seconds(const assignment_decision& decision, const std::vector<candidate>& all) {
  double longest = 0;
  for (const auto& one : all)
    longest = std::max(longest, decision.slots.at(one.worker).size() / one.slots_per_second);
  return longest;
}

TEST(assignment, every_slot_has_one_worker_for_any_number_of_both) {
  for (std::uint32_t slots = 1; slots <= 33; ++slots)
    for (std::uint32_t workers = 1; workers <= 20; ++workers) {
      assignment divided(slots);
      expect_partition(divided.decide(equals(workers)), slots);
    }
}

TEST(assignment, equal_workers_get_equal_parts) {
  assignment divided(8);
  const auto decision = divided.decide(equals(4));
  for (const auto& [worker, range] : decision.slots) EXPECT_EQ(range.size(), 2U);
}

TEST(assignment, with_more_workers_than_slots_some_idle) {
  assignment divided(2);
  std::uint32_t idle = 0;
  for (const auto& [worker, range] : divided.decide(equals(5)).slots) idle += range.empty() ? 1 : 0;
  EXPECT_EQ(idle, 3U);
}

TEST(assignment, who_is_slower_than_an_eighth_of_the_others_idles) {
  assignment divided(64), again(64);
  const auto all = [](double slowest) {
    return std::vector<candidate>{{{0}, {1}, 100}, {{1}, {1}, slowest}, {{2}, {1}, 100}};
  };
  EXPECT_EQ(divided.decide(all(10)).slots.at({1}).size(), 0U);
  EXPECT_EQ(again.decide(all(13)).slots.at({1}).size(), 4U);
}

TEST(assignment, who_is_at_something_for_long_is_as_slow_as_that) {
  assignment divided(12);
  const auto decision = divided.decide({{{0}, {1}, 100}, {{1}, {1}, 100, 50}});
  EXPECT_EQ(decision.slots.at({0}).size(), 8U);
  EXPECT_EQ(decision.slots.at({1}).size(), 4U);
  assignment unknown(12);
  EXPECT_EQ(unknown.decide({{{0}, {1}, 100}, {{1}, {1}, 0, 50}}).slots.at({1}).size(), 4U);
}

TEST(assignment, a_faster_worker_gets_more_in_proportion) {
  assignment divided(12);
  const auto decision = divided.decide({{{0}, {1}, 100}, {{1}, {1}, 200}});
  EXPECT_EQ(decision.slots.at({0}).size(), 4U);
  EXPECT_EQ(decision.slots.at({1}).size(), 8U);
}

TEST(assignment, an_unmeasured_worker_counts_as_the_mean) {
  assignment divided(12);
  const auto decision = divided.decide({{{0}, {1}, 100}, {{1}, {1}, 300}, {{2}, {1}, 0}});
  EXPECT_EQ(decision.slots.at({2}).size(), 4U);
}

TEST(assignment, speeds_that_are_no_numbers_count_as_unmeasured) {
  assignment divided(9);
  const auto decision = divided.decide(
      {{{0}, {1}, std::nan("")}, {{1}, {1}, std::numeric_limits<double>::infinity()}, {{2}, {1}, -5}});
  for (const auto& [worker, range] : decision.slots) EXPECT_EQ(range.size(), 3U);
}

TEST(assignment, no_division_is_more_than_a_little_slower_than_the_best) {
  std::mt19937 random(3); // NOLINT: the same every time
  for (int round = 0; round < 200; ++round) {
    const auto slots = 1 + static_cast<std::uint32_t>(random() % 300);
    auto all = equals(1 + random() % 9);
    double sum = 0;
    for (auto& one : all) sum += one.slots_per_second = 70.0 + static_cast<double>(random() % 490);
    assignment divided(slots);
    const auto decision = divided.decide(all);
    expect_partition(decision, slots);
    // At the best time T, worker i can have no more than floor(T * speed); find the smallest T that
    // places all slots.
    double best = std::numeric_limits<double>::max();
    for (const auto& one : all)
      for (std::uint32_t n = 1; n <= slots; ++n) {
        const double time = n / one.slots_per_second;
        if (time >= best) break;
        std::uint64_t placed = 0;
        for (const auto& other : all)
          placed += static_cast<std::uint64_t>(std::floor(time * other.slots_per_second + 1e-9));
        if (placed >= slots) best = time;
      }
    EXPECT_LE(step_seconds(decision, all), best * (1 + 1.0 / 32) + 1e-9)
        << slots << " slots, total speed " << sum;
  }
}

TEST(assignment, cuts_prefer_borders_of_large_subtrees) {
  assignment five(5);
  EXPECT_EQ(five.decide(equals(2)).slots.at({0}), make_slot_range(0, 2));
  assignment many(4096);
  for (const auto& [worker, range] : many.decide(equals(3)).slots) EXPECT_EQ(range.begin.value % 16, 0U);
}

TEST(assignment, a_small_change_of_speed_changes_nothing) {
  assignment divided(16);
  const auto before = divided.decide({{{0}, {1}, 100}, {{1}, {1}, 100}}).slots;
  const auto decision = divided.decide({{{0}, {1}, 100}, {{1}, {1}, 115}});
  EXPECT_EQ(decision.reason, "");
  EXPECT_EQ(decision.slots, before);
}

TEST(assignment, a_large_change_of_speed_is_followed_with_its_reason) {
  assignment divided(16);
  divided.decide({{{0}, {1}, 100}, {{1}, {1}, 100}});
  const auto decision = divided.decide({{{0}, {1}, 100}, {{1}, {1}, 300}});
  EXPECT_NE(decision.reason.find("speed"), std::string::npos);
  EXPECT_EQ(decision.slots.at({0}).size(), 4U);
}

TEST(assignment, speeds_that_go_up_and_down_do_not_make_it_swing) {
  assignment divided(64);
  divided.decide({{{0}, {1}, 100}, {{1}, {1}, 100}});
  int changes = 0;
  for (int i = 0; i < 50; ++i)
    changes +=
        divided.decide({{{0}, {1}, 100.0 + i % 2 * 8}, {{1}, {1}, 108.0 - i % 2 * 8}}).reason.empty() ? 0 : 1;
  EXPECT_EQ(changes, 0);
}

TEST(assignment, one_of_many_that_was_slow_has_its_share_back_when_it_is_fast_again) {
  for (const std::uint32_t workers : {2U, 7U, 8U, 30U}) {
    assignment divided(64 * workers);
    auto all = equals(workers);
    all[1].slots_per_second = 30;
    EXPECT_LE(divided.decide(all).slots.at({1}).size(), 30U);
    all[1].slots_per_second = 100;
    const auto decision = divided.decide(all);
    EXPECT_EQ(decision.slots.at({1}).size(), 64U) << workers << " workers";
    EXPECT_NE(decision.reason, "");
    EXPECT_EQ(divided.decide(all).reason, "");
  }
}

TEST(assignment, noise_does_not_make_the_shares_of_many_workers_swing) {
  std::mt19937 random(5); // NOLINT: the same every time
  for (const std::uint32_t workers : {3U, 8U, 13U, 40U})
    for (const std::uint32_t slots : {workers, 2 * workers, 3 * workers, 5 * workers, 8 * workers,
                                      8 * workers + 5, 11 * workers, 64 * workers}) {
      assignment divided(slots);
      auto all = equals(workers);
      all[1].slots_per_second = 60; // one that is slow for good
      divided.decide(all);
      int changes = 0;
      for (int i = 0; i < 300; ++i) {
        for (auto& one : all)
          one.slots_per_second = (one.worker.value == 1 ? 60.0 : 100.0) *
                                 (0.96 + 0.08 * static_cast<double>(random() % 100) / 99);
        changes += divided.decide(all).reason.empty() ? 0 : 1;
      }
      EXPECT_EQ(changes, 0) << workers << " workers, " << slots << " slots";
    }
}

TEST(assignment, says_who_came_was_restarted_and_went) {
  assignment divided(4);
  EXPECT_EQ(divided.decide(equals(1)).reason, "worker 0 takes part");
  EXPECT_EQ(divided.decide({{{0}, {2}, 100}}).reason, "worker 0 was restarted");
  EXPECT_EQ(divided.decide({{{1}, {1}, 100}}).reason,
            "worker 1 takes part, worker 0 does not take part any more");
  const auto nobody = divided.decide({});
  EXPECT_TRUE(nobody.slots.empty());
  EXPECT_EQ(nobody.reason, "worker 1 does not take part any more");
}

TEST(assignment, the_order_of_the_candidates_does_not_matter) {
  assignment one(10);
  assignment other(10);
  EXPECT_EQ(one.decide({{{0}, {1}, 100}, {{1}, {1}, 250}}).slots,
            other.decide({{{1}, {1}, 250}, {{0}, {1}, 100}}).slots);
}

TEST(assignment, a_thousand_workers_and_thousands_of_slots_are_divided) {
  assignment divided(4096);
  expect_partition(divided.decide(equals(1024)), 4096);
}

} // namespace
} // namespace dlrun::data_dispatcher
