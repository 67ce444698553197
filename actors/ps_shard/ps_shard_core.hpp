/// Decides what a PS shard accepts, sums, applies and publishes (rules R2, R4, R5, R7, R8).
#pragma once

#include "actors/protocol/messages.hpp"
#include "actors/protocol/planted_bug.hpp"
#include "actors/protocol/time.hpp"
#include "actors/ps_shard/ledger.hpp"

#include <functional>
#include <map>
#include <optional>
#include <variant>
#include <vector>

namespace dlrun::ps_shard {

/// Names a gradient value (a whole part of this shard's size) that the shell holds.
using value_id = strong_id<struct value_tag, std::uint64_t>;

struct ps_shard_core_config {
  ps_shard_id self;
  protocol::fence fence;
  std::uint64_t steps = 0; ///< N
  std::function<std::uint32_t(step_id)> slots_of;
  std::function<std::uint64_t(step_id, slot_id)> records_of; ///< training records of a slot, for the ledger
  std::uint32_t early_publish_bound = 1;                     ///< B of rule R7
  bool logs = false; ///< false: no log; a version is committed when it is applied
  protocol::planted_bug bug = protocol::planted_bug::none;
};

// ---- what the shell must do; values are worked on strictly in the order of these actions
// -------------------------------

/// into = left + right, element by element; `left` and `right` are consumed.
struct combine {
  value_id into, left, right;
  bool operator==(const combine&) const = default;
};
/// The value is not needed.
struct release {
  value_id value;
  bool operator==(const release&) const = default;
};
/// Make version_after(step) from version_before(step) and the step's summed gradient `root`, into the buffer
/// of the older version; then call on_applied(). `root` stays until released.
struct apply {
  step_id step;
  value_id root;
  bool operator==(const apply&) const = default;
};
/// Append the step's record to the log, then call on_appended(). Only when the configuration says that it
/// logs.
struct append {
  step_id step;
  value_id root;
  bool operator==(const append&) const = default;
};
/// Tell every worker state().
struct publish {
  bool operator==(const publish&) const = default;
};
/// Tell one worker state().
struct send_state {
  worker_id to;
  bool operator==(const send_state&) const = default;
};
/// Refuse: `to` speaks under an old incarnation.
struct send_fenced {
  worker_id to;
  incarnation newest;
  bool operator==(const send_fenced&) const = default;
};
/// This start is over (R4).
struct exit_fenced {
  incarnation newest;
  bool operator==(const exit_fenced&) const = default;
};

using ps_shard_action =
    std::variant<combine, release, apply, append, publish, send_state, send_fenced, exit_fenced>;
using ps_shard_actions = std::vector<ps_shard_action>;

/// Pure: same calls, same answers. It knows which subtrees are there, never their numbers.
class ps_shard_core {
public:
  /// Starts at version `restored` of `timeline` (0 of timeline 0 for a new job). `serves_previous`: the
  /// version before it is there too (R8). The shell publishes state() when it has started: that is the whole
  /// handshake of a restart (R9).
  ps_shard_core(ps_shard_core_config config, timeline_id timeline, version_id restored,
                bool serves_previous = false);

  /// Whether the tensor of this push is worth mapping; cheap, changes nothing. The shell asks before it
  /// fetches a segment.
  bool wants(const protocol::push& push) const;

  /// A gradient whose tensor the shell holds as `value` (ids below `first_own_value` are the shell's). The
  /// core either keeps it or releases it. A gradient that is new is answered by the publication of its step,
  /// any other at once.
  ps_shard_actions on_push(const protocol::push& push, value_id value);
  /// The same for a push that the shell did not map, or could not: the sender is told the state.
  ps_shard_actions on_unusable_push(const protocol::push& push);
  ps_shard_actions on_pull(const protocol::pull& pull);
  ps_shard_actions on_applied(step_id step);
  ps_shard_actions on_appended(step_id step);
  ps_shard_actions on_directory(const protocol::directory& directory);

  /// Where it stands; `parameters` is filled in by the shell.
  protocol::shard_state state() const;
  const ledger& applied() const { return ledger_; }
  /// The first gradient of each worker's newest start that was accepted and not held already, by worker.
  std::vector<protocol::first_contribution> contributions() const;
  bool trained() const { return applied_.value == config_.steps; }

  static constexpr std::uint64_t first_own_value = std::uint64_t{1} << 62;

private:
  struct held_value {
    value_id value;
    coverage slots; ///< which slots are really in it, from the pushes that made it
  };
  using open_step = std::map<protocol::slot_range, held_value>; ///< disjoint nodes of the step's tree

  bool knows_newer(const protocol::push& push) const;
  bool is_acceptable(const protocol::push& push) const;
  bool holds(step_id step, protocol::slot_range slots) const;
  bool is_in_window(step_id step) const;
  std::optional<ps_shard_actions> refuse_if_fenced(worker_id worker, incarnation speaking);
  void insert(const protocol::push& push, value_id value, ps_shard_actions& out);
  void insert_in_arrival_order(const protocol::push& push, value_id value, ps_shard_actions& out);
  void merge_upwards(step_id step, open_step::iterator node, ps_shard_actions& out);
  held_value merge(held_value left, held_value right, ps_shard_actions& out);
  void apply_next(ps_shard_actions& out);
  void note_contribution(const protocol::push& push);

  ps_shard_core_config config_;
  timeline_id timeline_;
  version_id applied_;
  version_id committed_;
  bool serves_previous_;
  bool fenced_ = false;
  std::map<step_id, open_step>
      open_; ///< of the step that is being applied too: what comes late is seen to be there
  std::optional<step_id> applying_;
  std::map<step_id, value_id> logging_; ///< roots that are not yet in the log
  std::map<worker_id, incarnation> newest_;
  std::map<worker_id, protocol::first_contribution> contributions_;
  ledger ledger_;
  std::uint64_t next_value_ = first_own_value;
};

} // namespace dlrun::ps_shard
