/// The canonical reduction tree over the slots of a step: the one order in which gradients are
/// summed, whoever sums them.
#pragma once

#include <bit>
#include <cstdint>
#include <dlrun/ids.hpp>
#include <optional>
#include <utility>
#include <vector>

namespace dlrun::protocol {

/// Half-open range of slots [begin, end) of one step.
struct slot_range {
  slot_id begin;
  slot_id end;

  constexpr std::uint32_t size() const { return end.value - begin.value; }
  constexpr bool empty() const { return end <= begin; }
  /// True when every slot of `inner` is in this range.
  constexpr bool contains(const slot_range& inner) const { return begin <= inner.begin && inner.end <= end; }
  constexpr bool overlaps(const slot_range& other) const { return begin < other.end && other.begin < end; }
  auto operator<=>(const slot_range&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, slot_range& x) {
    return f(x.begin, x.end);
  }
};

constexpr slot_range make_slot_range(std::uint32_t begin, std::uint32_t end) { return {{begin}, {end}}; }

/// Pure: the tree over [0, slots). A node of n > 1 slots splits at the largest power of two below
/// n, so nodes are nested or disjoint. Cheap to make.
class reduction_tree {
public:
  /// `slots` >= 1.
  explicit reduction_tree(std::uint32_t slots);

  slot_range root() const { return make_slot_range(0, slots_); }

  /// Left and right child of `node`, which is a node of more than one slot.
  static std::pair<slot_range, slot_range> children(slot_range node);

  /// True when `range` is a node of this tree (hostile input is not).
  bool is_node(slot_range range) const;

  /// The node whose child `node` is; empty for the root. `node` is a node of this tree.
  std::optional<slot_range> parent(slot_range node) const;

  /// The fewest nodes that together are exactly `wanted` cut to the root, in slot order.
  std::vector<slot_range> cover(slot_range wanted) const;
  /// No cover has more nodes: two of each size.
  std::uint32_t cover_max() const { return 2 * static_cast<std::uint32_t>(std::bit_width(slots_)); }

private:
  std::uint32_t slots_;
};

} // namespace dlrun::protocol
