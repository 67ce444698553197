/// Decides what a PS shard accepts, sums, applies, publishes, writes down and drops (rules R2, R4, R5, R7,
/// R8, R11 to R13, R16 to R18).
#pragma once

#include "actors/protocol/durability.hpp"
#include "actors/protocol/messages.hpp"
#include "actors/protocol/planted_bug.hpp"
#include "actors/ps_shard/evaluation_gate.hpp"
#include "actors/ps_shard/ledger.hpp"
#include "actors/ps_shard/norm_exchange.hpp"
#include "actors/ps_shard/open_steps.hpp"
#include "actors/ps_shard/ps_shard_actions.hpp"
#include "actors/ps_shard/version_store.hpp"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace dlrun::ps_shard {

struct ps_shard_core_config {
  ps_shard_id self;
  protocol::fence fence;
  std::uint32_t ps_shards = 1;
  std::uint64_t steps = 0; ///< N
  std::function<std::uint32_t(step_id)> slots_of;
  std::function<std::uint64_t(step_id, slot_id)> records_of; ///< training records of a slot, for the ledger
  std::uint32_t early_publish_bound = 1;                     ///< B of rule R7
  protocol::durability durability = protocol::durability::off;
  /// R17: versions that are snapshotted whoever asks, e.g. those to be evaluated. N always is.
  std::set<version_id> named_snapshots{};
  /// R17: versions that it goes beyond only when it is told to (on_go_on()). Empty: none.
  std::set<version_id> gates{};
  std::size_t snapshots_in_work_max = 2; ///< the shell's pool; a step that would need one more waits
  /// R12: makes the coupled quantity from the partials of all shards, in shard order. Pure; null when nothing
  /// couples.
  std::function<std::uint64_t(const std::vector<norm_partials>&)> combine_norms{};
  protocol::planted_bug bug = protocol::planted_bug::none;
};

/// Pure: same calls, same answers. It knows which subtrees are there, never their numbers.
class ps_shard_core {
public:
  /// Starts where the store stands; a new job (or one without a store) with `restored_state{}`.
  ps_shard_core(ps_shard_core_config config, restored_state restored);

  /// To be called once, when the shell can carry out actions: announces where it stands, which is the whole
  /// handshake of a restart (R9), makes named snapshots that a crash cut short, applies what needs no push.
  ps_shard_actions start();

  /// Whether the tensor of this push is worth mapping; cheap, changes nothing. The shell asks before it
  /// fetches a segment.
  bool wants(const protocol::push& push) const;

  /// A gradient whose tensor the shell holds as `value` (ids below `first_own_value` are the shell's). The
  /// core either keeps it or releases it. A gradient that is new is answered by the publication of its step,
  /// any other at once.
  ps_shard_actions on_push(const protocol::push& push, value_id value);
  /// The same for a push that the shell did not map, or could not: the sender is told the state.
  ps_shard_actions on_unusable_push(const protocol::push& push);
  /// Parts of all gradients of `step` are there. Whether its application may begin with them, and then the
  /// revision of the specification to do it with: from then on it is being applied, though the rest and the
  /// order to apply() it come later. What it is begun with has the bits of what comes (R1).
  std::optional<std::uint64_t> begin_early(step_id step);
  ps_shard_actions on_pull(const protocol::pull& pull);
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

  // from its shell
  ps_shard_actions on_measured(step_id step, norm_partials partials);
  ps_shard_actions on_applied(step_id step);
  /// The log holds (with `durability.sync: power`: synced) every step below `version`. Once for several steps
  /// when they were written as a group.
  ps_shard_actions on_committed(version_id version);
  /// The snapshot of `version`, and in `every_step` the log up to it, is synced; on_committed() came before.
  ps_shard_actions on_snapshot_durable(version_id version);
  /// It could not be written; training goes on without it. One that must be is ordered again by on_tick().
  ps_shard_actions on_snapshot_failed(version_id version);
  /// perform_rewind is done. `loaded` as after an opening of the store.
  ps_shard_actions on_rewound(restored_state loaded);
  /// Periodic, e.g. every 100 ms: repeats what may have been lost between shards (R12), and failed snapshots.
  ps_shard_actions on_tick();

  /// Where it stands; `parameters` is filled in by the shell.
  protocol::shard_state state() const;
  /// For the dispatcher; `sequence`, metrics and `durable.replay_us` are filled in by the shell.
  protocol::shard_status status(std::uint64_t probe = 0) const;
  const ledger& applied() const { return ledger_; }
  /// The first gradient of each worker's newest start that was accepted and not held already, by worker.
  std::vector<protocol::first_contribution> contributions() const;
  std::uint32_t slots_of(step_id step) const { return config_.slots_of(step); }
  bool trained() const { return applied_.value == config_.steps; }
  timeline_id timeline() const { return newest_timeline(history_); }
  /// Whether it can hand out the snapshot of `version` for an evaluation (R17).
  bool has_snapshot(timeline_id timeline, version_id version) const;

  static constexpr std::uint64_t first_own_value = std::uint64_t{1} << 62;

private:
  void load(restored_state&& restored);
  void announce(ps_shard_actions& out);
  bool knows_newer(const protocol::push& push) const;
  bool is_acceptable(const protocol::push& push) const;
  bool is_in_window(step_id step) const;
  std::vector<slot_id> parked_in(step_id step) const;
  std::uint64_t records_of(step_id step, slot_id slot) const;
  std::optional<ps_shard_actions> refuse_if_fenced(worker_id worker, incarnation speaking);
  void apply_next(ps_shard_actions& out);
  bool may_apply(step_id step) const;
  void apply_root(step_id step, const open_steps::held_value& root, std::uint64_t coupled,
                  ps_shard_actions& out);
  void order_snapshot(version_id version, ps_shard_actions& out);
  void make_missing_snapshots(ps_shard_actions& out);
  void drop(const drop_below& what, ps_shard_actions& out);
  void note_contribution(const protocol::push& push);

  ps_shard_core_config config_;
  protocol::history history_;
  std::vector<protocol::parked_slot> parked_; ///< of the newest timeline, sorted
  version_id applied_;
  version_id committed_;
  bool serves_previous_ = false;
  bool fenced_ = false;
  bool rewinding_ = false;
  open_steps open_; ///< of the step that is being applied too: what comes late is seen to be there
  std::optional<step_id> applying_;
  bool is_early_ = false;               ///< of that step: apply() is not ordered yet
  std::map<step_id, value_id> logging_; ///< roots that are not yet in the log
  norm_exchange norms_;
  version_store store_;
  evaluation_gate gate_;
  std::map<worker_id, incarnation> newest_;
  std::map<worker_id, protocol::first_contribution> contributions_;
  ledger ledger_;
};

} // namespace dlrun::ps_shard
