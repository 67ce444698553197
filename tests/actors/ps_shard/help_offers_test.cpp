#include "actors/ps_shard/help_offers.hpp"

#include <gtest/gtest.h>

namespace dlrun::ps_shard {
namespace {

using protocol::make_slot_range;
using protocol::reduction_tree;

std::vector<slot_id> slots(std::uint32_t begin, std::uint32_t end) {
  std::vector<slot_id> all;
  for (slot_id slot{begin}; slot.value < end; ++slot.value) all.push_back(slot);
  return all;
}

class help_offers_test : public testing::Test {
protected:
  protocol::slot_range ask(std::uint32_t worker, std::uint32_t tries, const std::vector<slot_id>& missing,
                           std::uint64_t step = 7, std::uint32_t all = 8) {
    return offers.next({{}, {worker}, {}, {step}, tries}, reduction_tree(all), missing);
  }

  help_offers offers;
  const std::vector<slot_id> missing{{2}, {3}, {6}};
};

TEST_F(help_offers_test, each_missing_slot_goes_to_one_worker_first) {
  EXPECT_EQ(ask(0, 1, missing), make_slot_range(6, 7));
  EXPECT_EQ(ask(1, 1, missing), make_slot_range(3, 4));
  EXPECT_EQ(ask(2, 1, missing), make_slot_range(2, 3));
  EXPECT_TRUE(ask(3, 1, missing).empty());
}

TEST_F(help_offers_test, who_asks_again_may_take_what_another_is_late_with) {
  EXPECT_EQ(ask(0, 1, {{2}}), make_slot_range(2, 3));
  EXPECT_TRUE(ask(1, 1, {{2}}).empty());
  EXPECT_EQ(ask(1, 2, {{2}}), make_slot_range(2, 3));
  EXPECT_TRUE(ask(1, 2, {{2}}).empty());
}

TEST_F(help_offers_test, from_offer_to_offer_a_worker_is_offered_twice_as_many_slots) {
  EXPECT_EQ(ask(0, 1, slots(0, 8)), make_slot_range(7, 8));
  EXPECT_EQ(ask(0, 1, slots(0, 7)), make_slot_range(6, 7)) << "the node of two has one that is there";
  EXPECT_EQ(ask(0, 1, slots(0, 6)), make_slot_range(4, 6));
  EXPECT_EQ(ask(1, 1, slots(0, 4)), make_slot_range(3, 4)) << "others begin with one";
  EXPECT_EQ(ask(0, 1, slots(0, 4)), make_slot_range(2, 3)) << "others have its sibling";
  EXPECT_EQ(ask(0, 1, slots(0, 2)), make_slot_range(0, 2));
}

/// R34: so that what it keeps of a step is bounded like a share.
TEST_F(help_offers_test, who_computes_all_that_a_step_lacks_is_offered_no_more_nodes_than_a_share_may_have) {
  std::uint64_t step = 0;
  for (const std::uint32_t all : {1U, 2U, 3U, 7U, 12U, 24U, 33U, 64U})
    for (std::uint32_t begin = 0; begin < all; ++begin)
      for (auto end = begin + 1; end <= all; ++end, ++step) {
        auto lacks = slots(begin, end);
        std::uint32_t nodes = 0;
        for (; !lacks.empty(); ++nodes) {
          const auto node = ask(0, 1, lacks, step, all);
          ASSERT_TRUE(reduction_tree(all).is_node(node));
          ASSERT_EQ(std::erase_if(lacks,
                                  [&](auto slot) {
                                    return node.contains({slot, {slot.value + 1}});
                                  }),
                    node.size());
        }
        ASSERT_LE(nodes, reduction_tree(all).cover_max()) << begin << " " << end << " of " << all;
      }
}

TEST_F(help_offers_test, half_of_64_slots_are_six_nodes) {
  auto lacks = slots(32, 64);
  std::uint32_t nodes = 0;
  for (; !lacks.empty(); ++nodes) {
    const auto node = ask(0, 1, lacks, 7, 64);
    std::erase_if(lacks, [&](auto slot) { return node.contains({slot, {slot.value + 1}}); });
  }
  EXPECT_EQ(nodes, 6U);
}

TEST_F(help_offers_test, another_step_begins_anew) {
  ask(0, 1, slots(0, 8));
  EXPECT_EQ(ask(0, 1, slots(0, 8), 8), make_slot_range(7, 8));
}

TEST_F(help_offers_test, of_a_step_that_lacks_nothing_there_is_no_offer) {
  EXPECT_TRUE(ask(0, 3, {}).empty());
}

} // namespace
} // namespace dlrun::ps_shard
