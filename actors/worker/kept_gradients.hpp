/// Which gradients a worker keeps, and what of a step is still to be computed.
#pragma once

#include "actors/protocol/parking.hpp"
#include "actors/protocol/reduction_tree.hpp"
#include "actors/protocol/time.hpp"
#include "actors/protocol/timeline.hpp"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace dlrun::worker {

/// Pure: knows the subtrees of slots whose gradients the worker keeps until all PS shards are past
/// them (R9, R10). Within a step they are disjoint. The shell has their values.
class kept_gradients {
public:
  using key = std::pair<step_id, protocol::slot_range>;

  void add(const key& one, protocol::time_point now) { kept_.insert_or_assign(one, kept{.since = now}); }
  void clear() { kept_.clear(); }

  /// Those of `first` and later steps, ascending.
  std::vector<key> from(step_id first) const;
  /// Runs of slots as a probe is answered with: neighbours merged, at most reported_slots_max.
  std::vector<protocol::step_slots> runs() const;
  /// The first node below `node`, or itself, of which nothing is kept and which is not parked in
  /// whole. What is the PS shards fill in themselves (R18); `parked` names it.
  std::optional<protocol::slot_range> first_missing(step_id step, protocol::slot_range node,
                                                    const protocol::parked_slots_list& parked) const;

  /// Drops the lowest steps while `is_past` says so, and then all but the lowest `steps_max` that
  /// are left. @returns what was dropped, ascending.
  std::vector<key> drop(const std::function<bool(step_id)>& is_past, std::uint32_t steps_max);

  /// PS shards apply nothing that is not finite, but cannot say where it is from. So of the steps
  /// from `open` on, which are not applied everywhere: those that are kept since `since` or longer,
  /// each once.
  std::vector<key> take_overdue(step_id open, protocol::time_point since);

  // Only for planted_bug::ack_forever: `shard` has said that it is past all steps below `open`.
  void acknowledge(ps_shard_id shard, step_id open);
  bool is_acknowledged(ps_shard_id shard, const key& one) const;

private:
  struct kept {
    protocol::time_point since;
    bool was_overdue = false;
    std::set<ps_shard_id> acknowledged{};
  };

  bool keeps_something_in(step_id step, protocol::slot_range slots) const;

  std::map<key, kept> kept_;
};

} // namespace dlrun::worker
