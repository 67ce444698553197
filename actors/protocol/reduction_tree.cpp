#include "actors/protocol/reduction_tree.hpp"

#include <bit>
#include <dlrun/check.hpp>

namespace dlrun::protocol {
namespace {

void cover_into(slot_range node, slot_range wanted, std::vector<slot_range>& out) {
  if (!node.overlaps(wanted)) return;
  if (wanted.contains(node)) {
    out.push_back(node);
    return;
  }
  const auto [left, right] = reduction_tree::children(node);
  cover_into(left, wanted, out);
  cover_into(right, wanted, out);
}

} // namespace

reduction_tree::reduction_tree(std::uint32_t slots)
    : slots_(slots) {
  DLRUN_CHECK(slots >= 1, "a step has at least one slot");
}

std::pair<slot_range, slot_range> reduction_tree::children(slot_range node) {
  DLRUN_CHECK(node.size() > 1, "a leaf has no children: [{}, {})", node.begin, node.end);
  const auto middle = node.begin.value + std::bit_floor(node.size() - 1);
  return {make_slot_range(node.begin.value, middle), make_slot_range(middle, node.end.value)};
}

bool reduction_tree::is_node(slot_range range) const {
  if (range.empty() || !root().contains(range)) return false;
  auto node = root();
  while (node != range) {
    if (node.size() == 1) return false;
    const auto [left, right] = children(node);
    if (left.contains(range))
      node = left;
    else if (right.contains(range))
      node = right;
    else
      return false;
  }
  return true;
}

std::optional<slot_range> reduction_tree::parent(slot_range node) const {
  auto above = root();
  if (above == node) return std::nullopt;
  for (;;) {
    const auto [left, right] = children(above);
    if (left == node || right == node) return above;
    DLRUN_CHECK(left.contains(node) || right.contains(node), "[{}, {}) is not a node", node.begin, node.end);
    above = left.contains(node) ? left : right;
  }
}

std::vector<slot_range> reduction_tree::cover(slot_range wanted) const {
  std::vector<slot_range> nodes;
  cover_into(root(), wanted, nodes);
  return nodes;
}

} // namespace dlrun::protocol
