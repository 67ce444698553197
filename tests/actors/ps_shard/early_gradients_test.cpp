// What can be applied of a step while its gradients are computed.
#include "actors/ps_shard/early_gradients.hpp"

#include <gtest/gtest.h>
#include <random>

namespace dlrun::ps_shard {
namespace {

using protocol::make_slot_range;

constexpr std::uint64_t floats = 100;
constexpr early_gradients::step_name first{{0}, {0}}, second{{0}, {1}};

class early_gradients_test : public testing::Test {
protected:
  /// Some made-up numbers whose sum depends on the order of adding.
  gradient made(std::uint64_t from) {
    auto numbers = std::make_shared<std::vector<float>>(floats);
    for (auto& number : *numbers)
      number = std::ldexp(static_cast<float>(random_() % 1000) / 7.0F, static_cast<int>(random_() % 20));
    return {*numbers, numbers, [] { return true; }, from};
  }

  std::mt19937 random_{1};
  early_gradients early_{floats};
};

TEST_F(early_gradients_test, nothing_can_be_applied_before_all_slots_have_some) {
  early_.add(first, 4, make_slot_range(0, 2), made(50));
  EXPECT_FALSE(early_.has_more());
  early_.add(first, 4, make_slot_range(3, 4), made(10));
  EXPECT_FALSE(early_.has_more());
  early_.add(first, 4, make_slot_range(2, 3), made(60));
  ASSERT_TRUE(early_.has_more());
  EXPECT_EQ(early_.begin(0).from, 60U) << "what all have";
  EXPECT_FALSE(early_.has_more());
}

TEST_F(early_gradients_test, more_of_each_lets_more_be_applied) {
  const auto left = made(80), right = made(90);
  early_.add(first, 2, make_slot_range(0, 1), left);
  early_.add(first, 2, make_slot_range(1, 2), right);
  EXPECT_EQ(early_.begin(5).from, 90U);
  EXPECT_EQ(early_.revision(), 5U);
  auto more = right;
  more.from = 20;
  early_.add(first, 2, make_slot_range(1, 2), more);
  EXPECT_EQ(early_.begin(5).from, 80U);
  more.from = 95; // told late
  early_.add(first, 2, make_slot_range(1, 2), more);
  EXPECT_FALSE(early_.has_more());
}

TEST_F(early_gradients_test, the_whole_is_left_to_the_push) {
  early_.add(first, 1, make_slot_range(0, 1), made(0));
  EXPECT_FALSE(early_.has_more());
}

TEST_F(early_gradients_test, another_step_takes_the_place_of_the_one_before) {
  early_.add(first, 2, make_slot_range(0, 1), made(50));
  early_.add(second, 2, make_slot_range(1, 2), made(50));
  EXPECT_FALSE(early_.has_more());
  early_.add(second, 2, make_slot_range(0, 1), made(50));
  EXPECT_TRUE(early_.has_more());
  early_.begin(0);
  early_.clear();
  EXPECT_FALSE(early_.is_begun());
  EXPECT_FALSE(early_.has_more());
}

TEST_F(early_gradients_test, slots_that_moved_to_another_worker_meanwhile_are_left_out) {
  early_.add(first, 4, make_slot_range(0, 2), made(50));
  early_.add(first, 4, make_slot_range(0, 4), made(50));
  EXPECT_FALSE(early_.has_more());
  early_.add(first, 4, make_slot_range(1, 2), made(50));
  early_.add(first, 4, make_slot_range(2, 4), made(50));
  ASSERT_TRUE(early_.has_more());
  EXPECT_EQ(early_.begin(0).gradients.size(), 2U);
}

TEST_F(early_gradients_test, sums_have_the_bits_of_the_tree) {
  std::vector<gradient> slots;
  for (std::uint32_t slot = 0; slot < 6; ++slot) slots.push_back(made(40));
  // The tree over 6 slots is ((0 + 1) + (2 + 3)) + (4 + 5).
  early_.add(first, 6, make_slot_range(0, 1), slots[0]);
  early_.add(first, 6, make_slot_range(1, 2), slots[1]);
  early_.add(first, 6, make_slot_range(2, 3), slots[2]);
  early_.add(first, 6, make_slot_range(3, 4), slots[3]);
  early_.add(first, 6, make_slot_range(4, 5), slots[4]);
  early_.add(first, 6, make_slot_range(5, 6), slots[5]);
  ASSERT_TRUE(early_.has_more());
  const auto work = early_.begin(0);
  const auto at = [&](std::size_t slot, std::size_t i) { return slots[slot].floats[i]; };
  std::vector<float> kept(20);
  for (const bool is_kept : {false, true}) {
    const auto part = work.part(50, 70, is_kept ? std::span{kept} : std::span<float>{});
    ASSERT_EQ(part.size(), 20U);
    for (std::size_t i = 0; i < part.size(); ++i)
      EXPECT_EQ(part[i], ((at(0, 50 + i) + at(1, 50 + i)) + (at(2, 50 + i) + at(3, 50 + i))) +
                             (at(4, 50 + i) + at(5, 50 + i)));
    EXPECT_EQ(part.data() == kept.data(), is_kept);
  }
}

TEST_F(early_gradients_test, one_gradient_for_all_slots_is_read_where_it_lies) {
  const auto all = made(30);
  early_.add(first, 4, make_slot_range(0, 4), all);
  const auto work = early_.begin(0);
  EXPECT_TRUE(work.is_one());
  EXPECT_EQ(work.part(40, 50, {}).data(), all.floats.data() + 40);
}

TEST_F(early_gradients_test, it_is_intact_while_all_are) {
  auto changed = made(30);
  bool is_intact = true;
  changed.intact = [&] { return is_intact; };
  early_.add(first, 2, make_slot_range(0, 1), changed);
  early_.add(first, 2, make_slot_range(1, 2), made(30));
  const auto work = early_.begin(0);
  EXPECT_TRUE(work.intact());
  is_intact = false;
  EXPECT_FALSE(work.intact());
}

} // namespace
} // namespace dlrun::ps_shard
