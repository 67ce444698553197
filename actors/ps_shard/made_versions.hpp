/// The versions of a PS shard, from when each may be made to when it is on disk (rules R7, R8, R11,
/// R17).
#pragma once

#include "actors/ps_shard/evaluation_gate.hpp"
#include "actors/ps_shard/ledger.hpp"
#include "actors/ps_shard/open_steps.hpp"
#include "actors/ps_shard/ps_shard_core_config.hpp"
#include "actors/ps_shard/replay_cost.hpp"
#include "actors/ps_shard/version_book.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace dlrun::ps_shard {

/// What of the store is behind.
enum class store_wait : std::uint8_t { nothing, log, snapshot };

/// Pure: says whether the next version may be made, and keeps the books of what is being made,
/// applied, committed and snapshotted. Of gradients it knows the roots that are not in the log yet.
class made_versions {
public:
  explicit made_versions(std::shared_ptr<const ps_shard_core_config> config);

  /// It stands at what was loaded.
  void restart(const loaded_standing& restored);

  /// R7, R17: the log is not too far behind, there is room for the snapshot that is due, and the
  /// evaluation before has been made.
  bool may_make(version_id version) const;
  /// What keeps it from being made, were all else there: not where its evaluation does.
  store_wait held_by(version_id version) const;
  /// Parts of the step are being applied; what is to be written of it is not known yet.
  void begin_early(step_id step);
  /// The step is being applied: `root` is its gradient, `records` those of each of its slots.
  void begin(step_id step, const open_steps::held_value& root, const std::vector<std::uint64_t>& records);
  bool is_making() const { return making_.has_value(); }
  /// What is being made was begun early, and no more than that.
  bool is_early() const { return is_early_; }

  /// That step, which was begun. @returns whether its root is in use still, for the log
  bool on_applied(step_id step, protocol::duration took);
  /// `every_step`: the log holds every step below. Releases roots that nobody needs any more.
  /// @returns false if that was known
  bool on_committed(version_id version, ps_shard_actions& out);
  void on_snapshot_durable(version_id version);

  /// Nobody will say what was appended: releases the roots of steps that are applied.
  void drop_appends(ps_shard_actions& out);

  /// Orders the snapshot of the version that was just applied, if one is wanted (R17).
  void snapshot_wanted(ps_shard_actions& out);
  /// R17: orders the snapshots that a crash cut short, or that failed.
  void snapshot_missing(ps_shard_actions& out);
  /// Orders one of the version that it stands at, whoever asks, unless that is being written.
  void snapshot_applied(ps_shard_actions& out);

  version_id applied() const { return applied_; }
  /// An append may be ahead of the update.
  version_id committed() const { return std::min(applied_, committed_); }
  /// While a step is being applied the buffer of the previous version is written to.
  bool serves_previous() const { return serves_previous_ && !making_; }
  /// Of what is on disk and what was applied; nothing where nothing is kept.
  protocol::durability_status durable() const;
  const protocol::applied_ledger& totals() const { return ledger_.totals(); }

  version_book& book() { return book_; }
  const version_book& book() const { return book_; }
  evaluation_gate& gate() { return gate_; }

private:
  bool is_gated(version_id version) const;

  std::shared_ptr<const ps_shard_core_config> config_;
  version_id applied_;
  version_id committed_;
  bool serves_previous_ = false;
  std::optional<step_id> making_;       ///< the step that is being applied
  bool is_early_ = false;               ///< of that step: apply is not ordered yet
  std::map<step_id, value_id> logging_; ///< roots that are not yet in the log
  ledger ledger_;
  version_book book_;
  evaluation_gate gate_;
  replay_cost replay_;
};

} // namespace dlrun::ps_shard
