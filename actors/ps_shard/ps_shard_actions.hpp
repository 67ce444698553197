/// What ps_shard_core tells its shell to do.
#pragma once

#include "actors/protocol/parking.hpp"
#include "actors/protocol/reduction_tree.hpp"
#include "actors/protocol/rewind_messages.hpp"
#include "actors/protocol/status_messages.hpp"
#include "actors/protocol/timeline.hpp"

#include <map>
#include <optional>
#include <variant>
#include <vector>

namespace dlrun::ps_shard {

/// Names a gradient value (a whole part of this shard's size) that the shell holds.
using value_id = strong_id<struct value_tag, std::uint64_t>;
/// The core numbers the values that it makes from here on; those below are the shell's.
inline constexpr std::uint64_t first_own_value = std::uint64_t{1} << 62;
/// One partial sum a parameter block of one shard, in block order; std::bit_cast of doubles (R12).
using norm_partials = std::vector<std::uint64_t>;

// Values are worked on strictly in the order of the actions.

/// into = left + right, element by element; `left` and `right` are consumed.
struct combine {
  value_id into, left, right;
  bool operator==(const combine&) const = default;
};
/// into = 0 in every element and metric: the gradient of a parked slot (R18).
struct make_zero {
  value_id into;
  protocol::parked_slot of;
  bool operator==(const make_zero&) const = default;
};
/// The value is not needed.
struct release {
  value_id value;
  bool operator==(const release&) const = default;
};
/// Make the norm partials of the step's summed gradient `root`; then call on_measured(). Only when
/// the configuration couples.
struct measure {
  step_id step;
  value_id root;
  std::uint64_t revision = 0; ///< of the specification, for this step: decides clipping by value
  bool operator==(const measure&) const = default;
};
/// Make version_after(step) from version_before(step) and the step's summed gradient `root`, into
/// the buffer of the older version; then call on_applied(). `root` stays until released. `coupled`
/// is what ps_shard_core_config::combine_norms made of the partials of all shards, 0 when nothing
/// couples.
struct apply {
  step_id step;
  value_id root;
  std::uint64_t coupled = 0;
  std::uint64_t revision = 0; ///< of the specification, for this step: decides learning rate and the like
  /// Makes `root` first, where nothing did: in one go, block by block, each sum is used while it is
  /// in a cache.
  std::optional<combine> sum{};
  bool operator==(const apply&) const = default;
};
/// Append the step's record to the log, after those given before; then call on_committed(). Only in
/// `every_step`. The record holds what is here, the bytes of `root` (which stays until released),
/// and the training metrics as of version_after(step), so that a replay needs nobody (R11, R12).
struct append {
  step_id step;
  value_id root;
  timeline_id timeline;
  std::uint64_t revision = 0;        ///< of the specification: a replay uses the same (R11)
  std::uint64_t coupled = 0;         ///< as for apply
  norm_partials partials{};          ///< own; empty when nothing couples
  protocol::applied_ledger ledger{}; ///< as of version_after(step)
  bool operator==(const append&) const = default;
};
/// What goes beside version_after(step), where memory that outlives the process holds it (R36); its
/// apply is next. Only in `snapshots`.
struct retain {
  step_id step;
  norm_partials partials{};          ///< own; empty when nothing couples
  protocol::applied_ledger ledger{}; ///< as of version_after(step)
  bool operator==(const retain&) const = default;
};
/// Copy the state of `version` before the next apply changes it (or, for a version already passed,
/// make it from the log), write it durably while training goes on, then call on_snapshot_durable().
/// In version order; not before the log up to `version` is synced too (R11).
struct take_snapshot {
  version_id version;
  protocol::applied_ledger ledger{}; ///< as of `version`; of no meaning for one made from the log
  bool operator==(const take_snapshot&) const = default;
};
/// Log and snapshots below `version` may be dropped, but not the snapshot of `kept`. `version`
/// itself is a snapshot of this shard.
struct drop_below {
  version_id version;
  std::optional<version_id> kept{};
  bool operator==(const drop_below&) const = default;
};
/// R16: drop what is being appended or snapshotted; in ONE synced write keep `history` and
/// logically truncate log and snapshots above `version`; load `version`; then call on_rewound().
/// Until then the shell may still call on_measured(), on_applied() and on_committed() of before,
/// afterwards no more.
struct perform_rewind {
  timeline_id timeline;
  version_id version;
  protocol::history history;
  bool operator==(const perform_rewind&) const = default;
};
/// To another PS shard.
struct send_norm {
  ps_shard_id to;
  protocol::norm message;
  bool operator==(const send_norm&) const = default;
};
struct send_norm_request {
  ps_shard_id to;
  protocol::norm_request message;
  bool operator==(const send_norm_request&) const = default;
};
/// Tell every worker state().
struct publish {
  bool operator==(const publish&) const = default;
};
/// Tell one worker state().
struct send_state {
  worker_id to;
  protocol::slot_range lacks{}; ///< goes with it (R34)
  bool operator==(const send_state&) const = default;
};
/// Tell the dispatcher status(probe) now.
struct send_status {
  std::uint64_t probe = 0;
  bool operator==(const send_status&) const = default;
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

/// This start is over, as it was asked to be (R37).
struct end_in_order {
  bool operator==(const end_in_order&) const = default;
};

using ps_shard_action =
    std::variant<combine, make_zero, release, measure, retain, apply, append, take_snapshot, drop_below,
                 perform_rewind, send_norm, send_norm_request, publish, send_state, send_status, send_fenced,
                 exit_fenced, end_in_order>;
using ps_shard_actions = std::vector<ps_shard_action>;

/// Where a PS shard stands once a version is loaded from its store, and what else the store holds.
struct loaded_standing {
  protocol::history history = protocol::first_history(); ///< as the newest rewind left it
  /// Loaded: the highest restorable one, the one a rewind names, or a higher one that memory
  /// retained (R36).
  version_id version{};
  bool serves_previous = false; ///< version - 1 was made too, on the way (R8)
  protocol::version_set restorable{{{0}, {0}}};
  std::vector<version_id> snapshots{}; ///< durable and intact, ascending, without version 0
  /// Own partials of the newest steps of the log, as many as there are up to bound + 2; empty when
  /// nothing couples.
  std::map<step_id, norm_partials> partials{};
  protocol::applied_ledger ledger{}; ///< as of `version`

  /// The newest version up to that which the store leads to: memory may have retained more (R36).
  version_id stored() const { return protocol::greatest_up_to(restorable, version).value_or(version_id{0}); }
  bool operator==(const loaded_standing&) const = default;
};

} // namespace dlrun::ps_shard
