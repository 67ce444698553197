#include "actors/protocol/reduction_tree.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <set>

namespace dlrun::protocol {
namespace {

constexpr std::uint32_t largest = 70;

/// All nodes, by the definition: a node of n > 1 slots splits at the largest power of two below n.
void nodes_below(std::uint32_t begin, std::uint32_t end, std::set<slot_range>& all) {
  all.insert(make_slot_range(begin, end));
  if (end - begin == 1) return;
  std::uint32_t left = 1;
  while (2 * left < end - begin) left *= 2;
  nodes_below(begin, begin + left, all);
  nodes_below(begin + left, end, all);
}

TEST(reduction_tree, a_range_is_a_node_exactly_if_the_definition_says_so) {
  for (std::uint32_t slots = 1; slots <= largest; ++slots) {
    const reduction_tree tree(slots);
    std::set<slot_range> nodes;
    nodes_below(0, slots, nodes);
    for (std::uint32_t begin = 0; begin <= slots + 1; ++begin)
      for (std::uint32_t end = 0; end <= slots + 1; ++end)
        ASSERT_EQ(tree.is_node(make_slot_range(begin, end)), nodes.contains(make_slot_range(begin, end)))
            << "[" << begin << ", " << end << ") of " << slots;
  }
}

TEST(reduction_tree, hostile_ranges_are_no_nodes) {
  const reduction_tree tree(7);
  EXPECT_FALSE(tree.is_node(make_slot_range(0, UINT32_MAX)));
  EXPECT_FALSE(tree.is_node(make_slot_range(UINT32_MAX, 0)));
  EXPECT_FALSE(tree.is_node(make_slot_range(UINT32_MAX - 1, UINT32_MAX)));
  EXPECT_FALSE(tree.is_node(make_slot_range(5, 2)));
  EXPECT_FALSE(tree.is_node(make_slot_range(3, 3)));
}

TEST(reduction_tree, the_parent_of_each_child_is_the_node_it_came_from) {
  for (std::uint32_t slots = 1; slots <= largest; ++slots) {
    const reduction_tree tree(slots);
    EXPECT_EQ(tree.parent(tree.root()), std::nullopt);
    std::set<slot_range> nodes;
    nodes_below(0, slots, nodes);
    for (const auto& node : nodes) {
      if (node.size() == 1) continue;
      const auto [left, right] = reduction_tree::children(node);
      EXPECT_EQ(tree.parent(left), node);
      EXPECT_EQ(tree.parent(right), node);
      EXPECT_EQ(left.end, right.begin);
    }
  }
}

TEST(reduction_tree, a_cover_is_exactly_the_range_by_maximal_nodes_in_slot_order) {
  for (std::uint32_t slots = 1; slots <= largest; ++slots) {
    const reduction_tree tree(slots);
    for (std::uint32_t begin = 0; begin <= slots; ++begin)
      for (std::uint32_t end = begin; end <= slots; ++end) {
        auto at = begin;
        for (const auto& node : tree.cover(make_slot_range(begin, end))) {
          ASSERT_TRUE(tree.is_node(node));
          ASSERT_EQ(node.begin.value, at);
          at = node.end.value;
          const auto above = tree.parent(node);
          ASSERT_FALSE(above && make_slot_range(begin, end).contains(*above));
        }
        ASSERT_EQ(at, end);
      }
  }
}

TEST(reduction_tree, a_cover_is_cut_to_the_slots_of_the_step) {
  EXPECT_EQ(reduction_tree(4).cover(make_slot_range(2, 100)), std::vector{make_slot_range(2, 4)});
  EXPECT_TRUE(reduction_tree(4).cover(make_slot_range(4, 9)).empty());
  EXPECT_TRUE(reduction_tree(4).cover(make_slot_range(3, 1)).empty());
}

TEST(reduction_tree, two_nodes_are_nested_or_disjoint) {
  std::set<slot_range> nodes;
  nodes_below(0, 23, nodes);
  for (const auto& a : nodes)
    for (const auto& b : nodes) EXPECT_TRUE(a.contains(b) || b.contains(a) || !a.overlaps(b));
}

TEST(reduction_tree, thousands_of_slots_are_covered_by_few_nodes) {
  EXPECT_EQ(reduction_tree(4096).cover(make_slot_range(0, 4096)).size(), 1U);
  EXPECT_LE(reduction_tree(4096).cover(make_slot_range(1, 4095)).size(), 24U);
}

TEST(reduction_tree, no_range_is_covered_by_more_than_two_nodes_of_each_size) {
  for (std::uint32_t slots = 1; slots <= 70; ++slots)
    for (std::uint32_t begin = 0; begin < slots; ++begin)
      for (auto end = begin + 1; end <= slots; ++end)
        ASSERT_LE(reduction_tree(slots).cover(make_slot_range(begin, end)).size(),
                  reduction_tree(slots).cover_max());
}

} // namespace
} // namespace dlrun::protocol
