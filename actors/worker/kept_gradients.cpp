#include "actors/worker/kept_gradients.hpp"
#include "actors/protocol/rewind_messages.hpp"

#include <algorithm>

namespace dlrun::worker {

using protocol::reduction_tree;
using protocol::slot_range;

std::vector<kept_gradients::key> kept_gradients::from(step_id first) const {
  std::vector<key> all;
  for (auto next = kept_.lower_bound({first, slot_range{}}); next != kept_.end(); ++next)
    all.push_back(next->first);
  return all;
}

std::vector<protocol::step_slots> kept_gradients::runs() const {
  std::vector<protocol::step_slots> all;
  for (const auto& [one, state] : kept_) {
    const auto& [step, slots] = one;
    if (!all.empty() && all.back().step == step && all.back().slots.end == slots.begin)
      all.back().slots.end = slots.end;
    else if (all.size() < protocol::reported_slots_max)
      all.push_back({step, slots});
  }
  return all;
}

std::vector<kept_gradients::key> kept_gradients::drop(const std::function<bool(step_id)>& is_past,
                                                      std::uint32_t steps_max) {
  std::vector<key> dropped;
  const auto drop_at = [&](auto one) {
    dropped.push_back(one->first);
    return kept_.erase(one);
  };
  auto next = kept_.begin();
  while (next != kept_.end() && is_past(next->first.first)) next = drop_at(next);
  for (std::uint32_t steps = 0; next != kept_.end() && steps < steps_max; ++steps)
    next = kept_.lower_bound({{next->first.first.value + 1}, slot_range{}});
  while (next != kept_.end()) next = drop_at(next);
  return dropped;
}

std::vector<kept_gradients::key> kept_gradients::take_overdue(step_id open, protocol::time_point since) {
  std::vector<key> overdue;
  for (auto next = kept_.lower_bound({open, slot_range{}}); next != kept_.end(); ++next)
    if (next->second.since <= since && !std::exchange(next->second.was_overdue, true))
      overdue.push_back(next->first);
  return overdue;
}

bool kept_gradients::keeps_something_in(step_id step, slot_range slots) const {
  const auto next = kept_.lower_bound({step, slot_range{slots.begin, {}}});
  const auto overlaps = [&](const key& one) { return one.first == step && one.second.overlaps(slots); };
  return (next != kept_.end() && overlaps(next->first)) ||
         (next != kept_.begin() && overlaps(std::prev(next)->first));
}

std::optional<slot_range> kept_gradients::first_missing(step_id step, slot_range node,
                                                        const protocol::parked_slots_list& parked) const {
  const auto is_parked = [&](const protocol::parked_slot& one) {
    return one.step == step && one.is_whole() && node.begin <= one.slot && one.slot < node.end;
  };
  if (std::cmp_equal(std::ranges::count_if(parked, is_parked), node.size())) return std::nullopt;
  if (!keeps_something_in(step, node)) return node;
  const auto at_or_before = kept_.upper_bound({step, slot_range{node.begin, {UINT32_MAX}}});
  if (at_or_before != kept_.begin()) {
    const auto& held = std::prev(at_or_before)->first;
    if (held.first == step && held.second.contains(node)) return std::nullopt;
  }
  const auto [left, right] = reduction_tree::children(node);
  if (const auto missing = first_missing(step, left, parked)) return missing;
  return first_missing(step, right, parked);
}

void kept_gradients::acknowledge(ps_shard_id shard, step_id open) {
  for (auto& [one, state] : kept_)
    if (one.first < open) state.acknowledged.insert(shard);
}

bool kept_gradients::is_acknowledged(ps_shard_id shard, const key& one) const {
  const auto found = kept_.find(one);
  return found != kept_.end() && found->second.acknowledged.contains(shard);
}

} // namespace dlrun::worker
