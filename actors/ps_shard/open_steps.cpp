#include "actors/ps_shard/open_steps.hpp"

#include <dlrun/check.hpp>
#include <utility>

namespace dlrun::ps_shard {

using protocol::is_planted;
using protocol::planted_bug;
using protocol::reduction_tree;
using protocol::slot_range;

open_steps::open_steps(std::function<std::uint32_t(step_id)> slots_of, std::uint64_t first_value,
                       planted_bug bug)
    : slots_of_(std::move(slots_of))
    , next_value_(first_value)
    , bug_(bug) {}

bool open_steps::holds(step_id step, slot_range slots) const {
  const auto open = open_.find(step);
  if (open == open_.end()) return false;
  if (is_planted(bug_, planted_bug::arrival_order))
    return !open->second.empty() && open->second.begin()->second.slots.touches(slots);
  if (is_planted(bug_, planted_bug::copy_counted) && slots != reduction_tree(slots_of_(step)).root() &&
      open->second.contains(slots))
    return false;
  const auto after = open->second.upper_bound({slots.begin, {UINT32_MAX}});
  return after != open->second.begin() && std::prev(after)->first.contains(slots);
}

/// R5: nodes are nested or disjoint, so the newcomer, which is in none, replaces those in it and
/// touches no other.
void open_steps::insert(step_id step, slot_range slots, value_id value, ps_shard_actions& out) {
  if (is_planted(bug_, planted_bug::arrival_order)) return insert_in_arrival_order(step, slots, value, out);
  if (is_planted(bug_, planted_bug::copy_counted) && add_copy(step, slots, value, out)) return;
  auto& open = open_[step];
  auto inner = open.lower_bound({slots.begin, {0}});
  while (inner != open.end() && inner->first.begin < slots.end) {
    out.emplace_back(release{inner->second.value});
    inner = open.erase(inner);
  }
  const auto node = open.emplace_hint(inner, slots, held_value{value, coverage(slots)});
  merge_upwards(step, node, out);
}

void open_steps::fill(step_id step, const std::vector<slot_id>& parked, ps_shard_actions& out) {
  for (const auto slot : parked) {
    const slot_range node{slot, {slot.value + 1}};
    if (slot.value >= slots_of_(step) || holds(step, node)) continue;
    const value_id zero{next_value_++};
    out.emplace_back(make_zero{zero, {step, slot}});
    insert(step, node, zero, out);
  }
}

void open_steps::merge_upwards(step_id step, nodes::iterator node, ps_shard_actions& out) {
  auto& open = open_.at(step);
  const reduction_tree tree(slots_of_(step));
  for (auto parent = tree.parent(node->first); parent; parent = tree.parent(node->first)) {
    const auto [left, right] = reduction_tree::children(*parent);
    const auto first = open.find(left);
    const auto second = open.find(right);
    if (first == open.end() || second == open.end()) return;
    auto sum = merge(std::move(first->second), std::move(second->second));
    if (*parent != tree.root()) out.emplace_back(*std::exchange(sum.last_sum, std::nullopt));
    open.erase(first);
    open.erase(second);
    node = open.emplace(*parent, std::move(sum)).first;
  }
}

open_steps::held_value open_steps::merge(held_value left, held_value right) {
  const value_id sum{next_value_++};
  left.slots.add(right.slots);
  return {sum, std::move(left.slots), combine{sum, left.value, right.value}};
}

/// The mistake of a shard that does not drop copies. `slots` is not the root: of that holds()
/// knows.
bool open_steps::add_copy(step_id step, slot_range slots, value_id value, ps_shard_actions& out) {
  const auto held = open_[step].find(slots);
  if (held == open_[step].end()) return false;
  held->second = merge(std::move(held->second), held_value{value, coverage(slots)});
  out.emplace_back(*std::exchange(held->second.last_sum, std::nullopt));
  return true;
}

/// The mistake that the canonical tree is there to avoid.
void open_steps::insert_in_arrival_order(step_id step, slot_range slots, value_id value,
                                         ps_shard_actions& out) {
  auto& open = open_[step];
  held_value sum{value, coverage(slots)};
  if (!open.empty()) {
    sum = merge(std::move(open.begin()->second), std::move(sum));
    out.emplace_back(*std::exchange(sum.last_sum, std::nullopt));
  }
  open.clear();
  const auto all = reduction_tree(slots_of_(step)).root();
  bool complete = true;
  for (auto slot = all.begin; slot < all.end; ++slot.value) complete = complete && sum.slots.count(slot) > 0;
  open.emplace(complete ? all : slot_range{all.end, all.end}, std::move(sum));
}

const open_steps::held_value* open_steps::root(step_id step) const {
  const auto open = open_.find(step);
  if (open == open_.end()) return nullptr;
  const auto whole = open->second.find(reduction_tree(slots_of_(step)).root());
  return whole == open->second.end() ? nullptr : &whole->second;
}

std::optional<combine> open_steps::take_last_sum(step_id step) {
  const auto open = open_.find(step);
  if (open == open_.end()) return std::nullopt;
  const auto whole = open->second.find(reduction_tree(slots_of_(step)).root());
  return whole == open->second.end() ? std::nullopt : std::exchange(whole->second.last_sum, std::nullopt);
}

void open_steps::order_last_sums(ps_shard_actions& out) {
  for (const auto& [step, open] : open_)
    if (const auto sum = take_last_sum(step)) out.emplace_back(*sum);
}

void open_steps::close(step_id step) {
  const auto closed = open_.erase(step);
  DLRUN_CHECK(closed == 1, "step {} is applied, so it was open", step);
}

void open_steps::clear(ps_shard_actions& out) {
  for (const auto& [step, open] : open_)
    for (const auto& [node, held] : open) out.emplace_back(release{held.value});
  open_.clear();
}

std::vector<slot_id> open_steps::missing(step_id step) const {
  std::vector<slot_id> all;
  for (slot_id slot{0}; slot.value < slots_of_(step); ++slot.value)
    if (!holds(step, {slot, {slot.value + 1}})) all.push_back(slot);
  return all;
}

std::vector<protocol::step_slots> open_steps::runs(step_id from) const {
  std::vector<protocol::step_slots> all;
  for (auto open = open_.lower_bound(from); open != open_.end(); ++open) {
    for (const auto& [node, held] : open->second) {
      if (!all.empty() && all.back().step == open->first && all.back().slots.end == node.begin)
        all.back().slots.end = node.end;
      else if (all.size() < protocol::reported_slots_max)
        all.push_back({open->first, node});
    }
  }
  return all;
}

} // namespace dlrun::ps_shard
