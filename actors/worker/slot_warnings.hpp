/// What a worker was told of slots in which workers have died (rule R18).
#pragma once

#include "actors/protocol/parking.hpp"
#include "actors/worker/worker_actions.hpp"

#include <vector>

namespace dlrun::worker {

/// Pure: says what of a subtree is left out of the training, and what has to be tried first.
class slot_warnings {
public:
  /// Of the timeline that the worker is on. Sorted.
  void set_parked(protocol::parked_slots_list parked) { parked_ = std::move(parked); }
  /// Of the newest directory.
  void set_suspects(std::vector<protocol::suspect_slot> suspects) { suspects_ = std::move(suspects); }

  protocol::parked_slots_list parked_in(step_id step, protocol::slot_range slots) const;
  /// The order to compute that subtree.
  compute_gradient order_of(timeline_id timeline, step_id step, protocol::slot_range slots) const;

private:
  std::vector<protocol::suspect_slot> suspects_in(step_id step, protocol::slot_range slots) const;

  protocol::parked_slots_list parked_;
  std::vector<protocol::suspect_slot> suspects_;
};

} // namespace dlrun::worker
