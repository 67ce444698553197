/// What a worker computes beside its share, so that no step waits for a slow one (rule R34).
#pragma once

#include "actors/worker/late_step.hpp"
#include "actors/worker/shard_standings.hpp"
#include "actors/worker/work_share.hpp"

#include <optional>
#include <utility>

namespace dlrun::worker {

/// Pure: decides when a worker asks for slots of others, and which of them it computes.
class straggler_help {
public:
  /// It works on `step` now. Idempotent.
  void open(step_id step, protocol::time_point now) { late_.open(step, now); }
  /// A PS shard may say what it lacks.
  void hear(const protocol::shard_state& state);
  void on_computed(step_id step, protocol::slot_range slots, protocol::duration took);
  /// It goes to another timeline.
  void clear() { lacking_.reset(); }

  /// The next node of `step` to compute, which is not kept: of its share, then of what a PS shard
  /// lacks.
  std::optional<protocol::slot_range> next_missing(step_id step, const work_share& share,
                                                   const kept_gradients& kept,
                                                   const slot_warnings& warnings) const;
  /// There is none of the open step. Asks for one if the step is late, or says when to look again;
  /// neither once it has computed as many nodes of others as a share may have.
  /// `asking`: as it asks, but for how often. Requires that a shard stands at that step.
  void look_for_more(protocol::pull asking, const work_share& share, const shard_standings& shards,
                     protocol::time_point now, worker_actions& out);

private:
  late_step late_;
  std::optional<std::pair<step_id, protocol::slot_range>> lacking_;
  std::optional<protocol::time_point> wakes_at_; ///< when it is to look again
};

} // namespace dlrun::worker
