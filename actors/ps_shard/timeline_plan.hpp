/// What the newest timeline says of each step: its slots, its records, its revision of the
/// specification.
#pragma once

#include "actors/protocol/step_messages.hpp"
#include "actors/ps_shard/ps_shard_core_config.hpp"

#include <memory>
#include <vector>

namespace dlrun::ps_shard {

/// Pure: the job as configured, without the slots that the timeline leaves out (R18).
class timeline_plan {
public:
  explicit timeline_plan(std::shared_ptr<const ps_shard_core_config> config);

  /// `history` is valid.
  void restart(protocol::history history);

  const protocol::history& history() const { return history_; }
  timeline_id timeline() const { return newest_timeline(history_); }
  /// Sorted.
  const std::vector<protocol::parked_slot>& parked() const { return parked_; }
  std::vector<slot_id> parked_in(step_id step) const;
  std::uint64_t revision(step_id step) const { return revision_at(history_, step); }
  /// Training records of each slot of the step.
  std::vector<std::uint64_t> records_in(step_id step) const;
  /// Whether a push is of a node of its step's tree, and counts the node's records.
  bool fits(const protocol::push& push) const;

private:
  std::uint64_t records_of(step_id step, slot_id slot) const;

  std::shared_ptr<const ps_shard_core_config> config_;
  protocol::history history_;
  std::vector<protocol::parked_slot> parked_;
};

} // namespace dlrun::ps_shard
