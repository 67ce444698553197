/// The steps of a PS shard, from their gradients to their updates (rules R5, R7, R12).
#pragma once

#include "actors/ps_shard/help_offers.hpp"
#include "actors/ps_shard/made_versions.hpp"
#include "actors/ps_shard/norm_exchange.hpp"
#include "actors/ps_shard/open_steps.hpp"
#include "actors/ps_shard/timeline_plan.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace dlrun::ps_shard {

/// Pure: decides when a step is applied, from the gradients and norms that are there, and what its
/// made_versions allow. Halted, since the shard is fenced or goes back, it still books what was
/// begun before, and begins nothing. What is to be done goes into `out`.
class step_pipeline {
public:
  explicit step_pipeline(std::shared_ptr<const ps_shard_core_config> config);

  /// It stands at what was loaded, and is not halted.
  void restart(loaded_standing&& restored);
  void halt() { halted_ = true; }
  bool is_halted() const { return halted_; }
  /// While it is paused it begins no step, and does all else; also after a restart.
  void pause(bool is_paused) { paused_ = is_paused; }

  /// Whether a push of this timeline can be used: it is in the window, fits its step, and is not
  /// held.
  bool can_use(const protocol::push& push) const;
  /// Such a push. @returns false when it is held all the same, since its slots are parked.
  bool take(const protocol::push& push, value_id value, ps_shard_actions& out);
  /// Begins whatever can be begun: to be called when something changed that it may have waited for.
  void apply_next(ps_shard_actions& out);
  /// All gradients of the step that is applied next are there.
  bool has_next() const { return open_.root(step_from(versions_.applied())) != nullptr; }
  /// What of the store the next version waits for, all else of it being there.
  store_wait held_by() const;
  /// R34: a node that the step it asks for lacks, if that is the next one, and that has no slot of
  /// those `on_the_way`; empty if there is none.
  protocol::slot_range offer(const protocol::pull& asked,
                             const std::vector<protocol::slot_range>& on_the_way);
  /// As ps_shard_core::begin_early().
  std::optional<std::uint64_t> begin_early(step_id step);
  void on_applied(step_id step, protocol::duration took, ps_shard_actions& out);
  /// Says its norms again, and asks for those of others again (R12).
  void repeat_norms(ps_shard_actions& out) const;
  /// Releases every gradient.
  void drop_gradients(ps_shard_actions& out);

  /// Of what is on disk, what is held, and what was applied; where nothing is kept, of what is
  /// held.
  protocol::durability_status durable() const;

  timeline_plan& plan() { return plan_; }
  const timeline_plan& plan() const { return plan_; }
  norm_exchange& norms() { return norms_; }
  made_versions& versions() { return versions_; }
  const made_versions& versions() const { return versions_; }

private:
  void try_apply_next(ps_shard_actions& out);
  void apply_root(step_id step, std::uint64_t coupled, ps_shard_actions& out);

  std::shared_ptr<const ps_shard_core_config> config_;
  timeline_plan plan_;
  bool halted_ = false;
  bool paused_ = false;
  open_steps open_; ///< of the step that is being applied too: what comes late is seen to be there
  help_offers offers_;
  norm_exchange norms_;
  made_versions versions_;
};

} // namespace dlrun::ps_shard
