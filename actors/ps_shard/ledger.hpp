/// Which samples are in the parameters, from what was summed (invariant I1).
#pragma once

#include "actors/protocol/reduction_tree.hpp"
#include "actors/protocol/status_messages.hpp"

#include <cstdint>
#include <vector>

namespace dlrun::ps_shard {

/// How often each slot of one step is in a value. A canonical value is one run, whatever its size.
class coverage {
public:
  coverage() = default;
  /// A pushed gradient: each slot of `slots` once.
  explicit coverage(protocol::slot_range slots);
  /// Adds what another value covers.
  void add(const coverage& other);
  /// Times slot `slot` is in the value.
  std::uint32_t count(slot_id slot) const;
  /// True when a slot of `slots` is in the value.
  bool touches(protocol::slot_range slots) const;

private:
  struct run {
    protocol::slot_range slots;
    std::uint32_t times = 0;
  };
  void append(protocol::slot_range slots, std::uint32_t times);

  std::vector<run> runs_; ///< disjoint, in slot order, neighbours differ in `times`
};

/// Sums over all updates of a shard. `steps_redone` counts updates of a step that had been applied
/// before.
class ledger {
public:
  /// The parameters are those before step `next` now, and `totals` says what is in them. What was
  /// applied and redone so far stays counted.
  void restart(const protocol::applied_ledger& totals, step_id next);

  /// `records_of_slot[k]` = training records of slot k of the step.
  void applied(step_id step, const coverage& value, const std::vector<std::uint64_t>& records_of_slot);
  const protocol::applied_ledger& totals() const { return totals_; }

private:
  protocol::applied_ledger totals_;
  std::uint64_t next_step_ = 0; ///< steps below were applied at least once
};

} // namespace dlrun::ps_shard
