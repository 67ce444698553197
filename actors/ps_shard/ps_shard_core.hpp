/// Decides what a PS shard accepts, sums, applies, publishes, writes down and drops (rules R2, R4,
/// R5, R7, R8, R11 to R13, R16 to R18).
#pragma once

#include "actors/ps_shard/ps_shard_core_config.hpp"
#include "actors/ps_shard/shard_move.hpp"
#include "actors/ps_shard/step_pipeline.hpp"
#include "actors/ps_shard/worker_starts.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace dlrun::ps_shard {

/// The sender of a push that the shell did not map, or could not, is told the state, as if it had
/// asked for it.
inline protocol::pull question_in(const protocol::push& push) {
  return {push.timeline, push.worker, push.self};
}

/// Pure: decides which gradients a PS shard takes and when it applies, publishes, writes down and
/// drops what. It knows which subtrees are there, never their numbers.
class ps_shard_core {
public:
  /// Starts where the store stands; a new job (or one without a store) with `loaded_standing{}`.
  ps_shard_core(ps_shard_core_config config, loaded_standing restored);

  /// To be called once, when the shell can carry out actions: announces where it stands, which is
  /// the whole handshake of a restart (R9), makes named snapshots that a crash cut short, applies
  /// what needs no push.
  ps_shard_actions start();

  /// False when the sender claims a worker's start without its token (R4): it gets no answer.
  bool speaks_for_itself(worker_id worker, const protocol::fence& claimed) const;
  /// Whether the tensor of this push is worth mapping; cheap, changes nothing. The shell asks
  /// before it fetches a segment.
  bool wants(const protocol::push& push) const;

  /// A gradient whose tensor the shell holds as `value` (ids below `first_own_value` belong to the
  /// shell). The core either keeps it or releases it. A new gradient is answered when its step is
  /// published, any other at once.
  ps_shard_actions on_push(const protocol::push& push, value_id value);
  /// Whether a push is of the step that is applied next.
  bool is_next(const protocol::push& push) const;
  /// Parts of all gradients of `step` are there, or more of them. @returns the revision of the
  /// specification with which to apply these parts now, or nothing when the step may not begin yet.
  /// From then on the step is being applied, though the rest, and the order to apply() it, come
  /// later: the parts have the bits of the whole (R1).
  std::optional<std::uint64_t> begin_early(step_id step);
  /// `on_the_way`: subtrees of that step whose gradients the shell is fetching and expects soon.
  ps_shard_actions on_pull(const protocol::pull& pull,
                           const std::vector<protocol::slot_range>& on_the_way = {});
  ps_shard_actions on_directory(const protocol::directory& directory);

  // from other PS shards
  ps_shard_actions on_norm(const protocol::norm& message);
  ps_shard_actions on_norm_request(const protocol::norm_request& message);

  // from the dispatcher
  ps_shard_actions on_rewind(const protocol::rewind& order);
  ps_shard_actions on_name_snapshot(const protocol::name_snapshot& order);
  ps_shard_actions on_floor(const protocol::floor& order);
  ps_shard_actions on_pin(const protocol::pin& order);
  ps_shard_actions on_go_on(const protocol::go_on& order);
  ps_shard_actions on_probe(const protocol::probe& question);

  // from the agent, again and again
  /// Whether it is to end, for the next start of it to be elsewhere: without a log once its version
  /// is committed, so that no step is done again (R37). When it is not any more it goes on at once.
  ps_shard_actions on_move(bool is_wanted);

  // from its shell
  ps_shard_actions on_measured(step_id step, norm_partials partials);
  /// `took`: how long the update took.
  ps_shard_actions on_applied(step_id step, protocol::duration took = {});
  /// The log holds (with `durability.sync: power`: synced) every step below `version`. Once for
  /// several steps when they were written as a group.
  ps_shard_actions on_committed(version_id version);
  /// The snapshot of `version`, and in `every_step` the log up to it, is synced; on_committed()
  /// came before. Of one that was ordered on a timeline that was left nothing is concluded (R16).
  ps_shard_actions on_snapshot_durable(timeline_id of, version_id version);
  /// It could not be written; training goes on without it. One that must be is ordered again by
  /// on_tick().
  ps_shard_actions on_snapshot_failed(timeline_id of, version_id version);
  /// perform_rewind is done. `loaded` as after an opening of the store.
  ps_shard_actions on_rewound(loaded_standing loaded);
  /// Periodic, e.g. every 100 ms: repeats what may have been lost between shards (R12), and failed
  /// snapshots.
  ps_shard_actions on_tick();

  /// Where the shard stands; the shell fills in `parameters`.
  protocol::shard_state state() const;
  /// The status for the dispatcher; the shell fills in `sequence`, metrics, times and bytes.
  protocol::shard_status status(std::uint64_t probe = 0) const;
  timeline_id timeline() const { return pipeline_.plan().timeline(); }
  struct parts {
    const step_pipeline& pipeline;
    const shard_move& move;
  };
  /// What decides in it, to be looked at.
  parts look() const { return {pipeline_, move_}; }
  /// Whether it can hand out the snapshot of `version` for an evaluation (R17).
  bool has_snapshot(timeline_id timeline, version_id version) const;

private:
  std::shared_ptr<const ps_shard_core_config> config_;
  bool fenced_ = false;
  bool rewinding_ = false;
  bool has_contribution_to_tell_ = false;
  worker_starts starts_;
  step_pipeline pipeline_;
  shard_move move_;
};

/// It stands still, to move, until its version is committed.
inline bool waits_for_store(const ps_shard_core& core) {
  const auto at = core.state();
  return core.look().move.stands_still() && at.committed < at.applied;
}

} // namespace dlrun::ps_shard
