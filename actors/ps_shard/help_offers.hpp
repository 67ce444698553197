/// Which of the slots that a step lacks a worker computes that waits for them (rule R34).
#pragma once

#include "actors/protocol/reduction_tree.hpp"

#include <cstdint>
#include <dlrun/ids.hpp>
#include <map>
#include <optional>
#include <vector>

namespace dlrun::ps_shard {

/// Pure. Each slot goes to one worker first. It may be late too, or dead: who has asked k times is
/// offered what was offered less than k times.
class help_offers {
public:
  /// One of `missing`, which is ascending: of those that were offered least the last, since who has
  /// the slots by lease begins with the first. Empty when `tries` are too few for any.
  protocol::slot_range next(step_id step, std::uint32_t tries, const std::vector<slot_id>& missing) {
    if (step_ != step) times_.clear();
    step_ = step;
    std::optional<slot_id> least;
    for (const auto slot : missing)
      if (!least || times_[slot] <= times_[*least]) least = slot;
    if (!least || times_[*least] >= tries) return {};
    ++times_[*least];
    return {*least, {least->value + 1}};
  }

private:
  std::optional<step_id> step_;
  std::map<slot_id, std::uint32_t> times_; ///< that it was offered
};

} // namespace dlrun::ps_shard
