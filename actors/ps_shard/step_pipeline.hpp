/// The steps of a PS shard, from their gradients to the version in the log (rules R5, R7, R8, R12,
/// R17).
#pragma once

#include "actors/ps_shard/evaluation_gate.hpp"
#include "actors/ps_shard/help_offers.hpp"
#include "actors/ps_shard/ledger.hpp"
#include "actors/ps_shard/move_order.hpp"
#include "actors/ps_shard/norm_exchange.hpp"
#include "actors/ps_shard/open_steps.hpp"
#include "actors/ps_shard/replay_cost.hpp"
#include "actors/ps_shard/timeline_plan.hpp"
#include "actors/ps_shard/version_book.hpp"

#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace dlrun::ps_shard {

/// Pure: decides when a step is applied, and keeps the books of what is applied, committed and
/// snapshotted. Halted, since the shard is fenced or goes back, it still books what was begun
/// before, and begins nothing. What is to be done goes into `out`.
class step_pipeline {
public:
  step_pipeline(std::shared_ptr<const ps_shard_core_config> config, std::shared_ptr<shard_move> move);

  /// It stands at what was loaded, and is not halted.
  void restart(loaded_standing&& restored);
  void halt() { halted_ = true; }
  bool is_halted() const { return halted_; }

  /// Whether a push of this timeline can be used: it is in the window, fits its step, and is not
  /// held.
  bool can_use(const protocol::push& push) const;
  /// Such a push. @returns false when it is held all the same, since its slots are parked.
  bool take(const protocol::push& push, value_id value, ps_shard_actions& out);
  /// Begins whatever can be begun: to be called when something changed that it may have waited for.
  void apply_next(ps_shard_actions& out);
  /// R34: a node that the step it asks for lacks, if that is the next one, and that has no slot of
  /// those `on_the_way`; empty if there is none.
  protocol::slot_range offer(const protocol::pull& asked,
                             const std::vector<protocol::slot_range>& on_the_way);
  /// As ps_shard_core::begin_early().
  std::optional<std::uint64_t> begin_early(step_id step);

  void on_applied(step_id step, protocol::duration took, ps_shard_actions& out);
  void on_committed(version_id version, ps_shard_actions& out);
  void on_snapshot_durable(version_id version, ps_shard_actions& out);
  /// R37: while a move is wanted it trains on until snapshots that were begun before are committed,
  /// so that it has to wait for one or two at most; then it begins no step any more, and ends when
  /// its version is committed and nobody needs the one before. `snapshots` only.
  void stand_still(ps_shard_actions& out);
  /// R17: orders the snapshots that a crash cut short, or that failed.
  void order_missing_snapshots(ps_shard_actions& out);
  /// Says its norms again, and asks for those of others again (R12).
  void repeat_norms(ps_shard_actions& out) const;
  /// Releases every gradient.
  void drop_gradients(ps_shard_actions& out);

  version_id applied() const { return applied_; }
  /// An append may be ahead of the update.
  version_id committed() const { return std::min(applied_, committed_); }
  /// While a step is being applied the buffer of the previous version is written to.
  bool serves_previous() const { return serves_previous_ && !applying_; }
  /// Of what is on disk, what is held, and what was applied; where nothing is kept, of what is
  /// held.
  protocol::durability_status durable() const;
  const protocol::applied_ledger& totals() const { return ledger_.totals(); }

  timeline_plan& plan() { return plan_; }
  const timeline_plan& plan() const { return plan_; }
  norm_exchange& norms() { return norms_; }
  version_book& versions() { return versions_; }
  const version_book& versions() const { return versions_; }
  evaluation_gate& gate() { return gate_; }

private:
  bool may_apply(step_id step) const;
  void try_apply_next(ps_shard_actions& out);
  void apply_root(step_id step, std::uint64_t coupled, ps_shard_actions& out);

  std::shared_ptr<const ps_shard_core_config> config_;
  timeline_plan plan_;
  version_id applied_;
  version_id committed_;
  bool serves_previous_ = false;
  bool halted_ = false;
  open_steps open_; ///< of the step that is being applied too: what comes late is seen to be there
  std::optional<step_id> applying_;
  bool is_early_ = false;               ///< of that step: apply is not ordered yet
  std::map<step_id, value_id> logging_; ///< roots that are not yet in the log
  help_offers offers_;
  norm_exchange norms_;
  version_book versions_;
  evaluation_gate gate_;
  ledger ledger_;
  replay_cost replay_;
  std::shared_ptr<shard_move> move_; ///< of the core
};

} // namespace dlrun::ps_shard
