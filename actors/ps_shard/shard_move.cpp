#include "actors/ps_shard/shard_move.hpp"

#include <utility>

namespace dlrun::ps_shard {

using protocol::durability;
using protocol::is_planted;
using protocol::planted_bug;

void shard_move::hear(bool is_wanted, step_pipeline& steps, ps_shard_actions& out) {
  if (config_->durability != durability::snapshots || is_planted(config_->bug, planted_bug::leave_unsaved)) {
    if (is_wanted) out.emplace_back(end_in_order{});
    return;
  }
  const bool was_wanted = std::exchange(is_wanted_, is_wanted);
  if (is_wanted) {
    if (!was_wanted) begun_before_ = steps.versions().book().newest_in_work();
    return advance(steps, out);
  }
  if (!was_wanted) return;
  begun_before_.reset();
  stands_still_ = false;
  steps.pause(false);
  steps.apply_next(out);
}

/// All gradients of the next step are there: so all shards have come to this version, and nobody
/// needs the one before any more, nor its norm (R8, R12). And others are a version ahead at most:
/// of the step that it lacks then workers keep the gradients (R10). After the last version there is
/// no step that would tell, so it stays: the job is about to end.
void shard_move::advance(step_pipeline& steps, ps_shard_actions& out) {
  if (!is_wanted_ || steps.is_halted()) return;
  auto& versions = steps.versions();
  stands_still_ = stands_still_ || !versions.book().has_in_work(begun_before_);
  steps.pause(stands_still_);
  if (!stands_still_ || versions.is_making()) return;
  if (versions.committed() < versions.applied()) return versions.snapshot_applied(out);
  const bool is_last = versions.applied().value == config_->steps;
  const bool leaves_last = is_last && is_planted(config_->bug, planted_bug::leave_last);
  if (steps.has_next() || leaves_last || is_planted(config_->bug, planted_bug::leave_alone))
    out.emplace_back(end_in_order{});
}

void shard_move::on_snapshot_failed(version_id version, const step_pipeline& steps,
                                    ps_shard_actions& out) const {
  if (stands_still_ && version == steps.versions().applied()) out.emplace_back(end_in_order{});
}

} // namespace dlrun::ps_shard
