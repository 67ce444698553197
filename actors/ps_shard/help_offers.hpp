/// Which of the slots that a step lacks a waiting worker is offered (rule R34).
#pragma once

#include "actors/protocol/reduction_tree.hpp"
#include "actors/protocol/step_messages.hpp"

#include <algorithm>
#include <cstdint>
#include <dlrun/ids.hpp>
#include <map>
#include <optional>
#include <vector>

namespace dlrun::ps_shard {

/// Pure: chooses the node that a worker is offered. Each slot goes to one worker first. That worker
/// may be late too, or dead: so a worker that asks for the k-th time is offered what was offered
/// less than k times. A worker keeps one gradient for each node until the step is committed. So the
/// first offer is one slot, that many may help, and each further offer may be twice as large, that
/// a worker ends up with no more nodes than a share has.
class help_offers {
public:
  /// A node of `tree` in `missing`, which is ascending: of the slots that were offered least the
  /// last, since who has them by lease begins with the first. Empty when it has asked too few times
  /// for any.
  protocol::slot_range next(const protocol::pull& asked, const protocol::reduction_tree& tree,
                            const std::vector<slot_id>& missing) {
    if (step_ != asked.step) *this = {};
    step_ = asked.step;
    std::optional<slot_id> least;
    for (const auto slot : missing)
      if (!least || times_[slot] <= times_[*least]) least = slot;
    if (!least || times_[*least] >= asked.tries) return {};
    const auto node = largest_around(*least, tree, missing, 1U << std::min(given_[asked.worker]++, 31U));
    for (auto slot = node.begin; slot < node.end; ++slot.value) ++times_[slot];
    return node;
  }

private:
  /// Whose slots were all offered as rarely.
  protocol::slot_range largest_around(slot_id least, const protocol::reduction_tree& tree,
                                      const std::vector<slot_id>& missing, std::uint32_t slots_max) {
    const auto fits = [&](protocol::slot_range node) {
      for (auto slot = node.begin; slot < node.end; ++slot.value)
        if (!std::ranges::binary_search(missing, slot) || times_[slot] != times_[least]) return false;
      return node.size() <= slots_max;
    };
    protocol::slot_range node{least, {least.value + 1}};
    for (auto parent = tree.parent(node); parent && fits(*parent); parent = tree.parent(node)) node = *parent;
    return node;
  }

  std::optional<step_id> step_;
  std::map<slot_id, std::uint32_t> times_;   ///< that it was offered
  std::map<worker_id, std::uint32_t> given_; ///< nodes
};

} // namespace dlrun::ps_shard
