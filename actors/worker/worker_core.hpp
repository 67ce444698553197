/// Decides what a worker computes, fetches, pushes and keeps (rules R2, R3, R5, R6, R9,
/// R10, R34).
#pragma once

#include "actors/worker/kept_gradients.hpp"
#include "actors/worker/parameter_parts.hpp"
#include "actors/worker/shard_connections.hpp"
#include "actors/worker/shard_contacts.hpp"
#include "actors/worker/shard_standings.hpp"
#include "actors/worker/slot_warnings.hpp"
#include "actors/worker/straggler_help.hpp"
#include "actors/worker/work_share.hpp"
#include "actors/worker/worker_actions.hpp"

#include <optional>
#include <utility>

namespace dlrun::worker {

/// Pure: decides what a worker connects to, fetches, computes, pushes and keeps. Parameters and
/// gradients stay in the shell; the core names them by (shard, version) and (step, slots).
///
///   directory ──> shard_connections ──> connect, pull
///   shard_state ──> shard_standings ──> open_step ──> fetch ──> parameter_parts
///   lease, directory ──> work_share ───> compute <───────────────────┘
///   on_computed ──> kept_gradients ──> push, forget
///   on_tick ──> shard_contacts ──> push again, pull
///   nothing left to do ──> straggler_help ──> wake, pull ──> shard_state: it lacks ... ──> compute
class worker_core {
public:
  explicit worker_core(worker_core_config config);

  /// A shard says where it stands. States of older timelines and incarnations are ignored, a newer
  /// incarnation replaces what was known, downwards too (R3), a newer timeline voids everything
  /// (R2).
  worker_actions on_shard_state(const protocol::shard_state& state, protocol::time_point now);

  worker_actions on_connected(ps_shard_id shard, incarnation start, protocol::time_point now);
  worker_actions on_unconnected(ps_shard_id shard, incarnation start, protocol::time_point now);

  /// The fetch `order` has ended.
  worker_actions on_part(const fetch_part& order, fetch_outcome outcome, protocol::time_point now);

  /// A computation has ended. The shell keeps its gradient until it is told to forget it, which may
  /// be in the actions of this call.
  worker_actions on_computed(timeline_id timeline, step_id step, protocol::slot_range slots,
                             protocol::time_point now);

  /// A computation is void: parameters that it read in place were overwritten.
  worker_actions on_overwritten(timeline_id timeline, step_id step, protocol::slot_range slots,
                                protocol::time_point now);

  worker_actions on_lease(const protocol::lease& lease, protocol::time_point now);
  /// Older directories are ignored.
  worker_actions on_directory(const protocol::directory& directory, protocol::time_point now);
  worker_actions on_fenced(const protocol::fenced& message, protocol::time_point now);
  /// The dispatcher looks for gradients (R14). Answered at once.
  worker_actions on_probe(const protocol::probe& question, protocol::time_point now);
  /// The worker is asked to leave (R33): exit_left follows once nobody needs a gradient that it
  /// keeps.
  worker_actions on_leave(protocol::time_point now);
  /// To be called every `repeat_after` or sooner, and when a `wake` says so.
  worker_actions on_tick(protocol::time_point now);

  /// Whether on_directory() has heard of no newer directory.
  bool is_newest(const protocol::directory& directory) const;
  timeline_id timeline() const { return timeline_; }
  /// The step it works on: the lowest version any shard stands at (R6); empty before every shard
  /// was heard.
  std::optional<step_id> open_step() const;
  /// True when every shard stands at version N.
  bool trained() const;
  /// The status for the dispatcher, without the figures of the work done.
  protocol::worker_status status() const;

private:
  bool adopt(const protocol::shard_state& state, worker_actions& out);
  void act(protocol::time_point now, worker_actions& out);
  void work(protocol::time_point now, worker_actions& out);
  void forget(worker_actions& out);
  void fetch(worker_actions& out);
  void compute(protocol::time_point now, worker_actions& out);
  void push_from(ps_shard_id shard, step_id first, protocol::time_point now, worker_actions& out);
  void repeat(ps_shard_id shard, protocol::time_point now, worker_actions& out);
  void pull(ps_shard_id shard, protocol::time_point now, worker_actions& out);
  void look_at_overdue(protocol::time_point now, worker_actions& out);
  worker_actions exit_if_older(incarnation newest);

  bool end_computation(timeline_id timeline, step_id step, protocol::slot_range slots);

  worker_core_config config_;
  timeline_id timeline_{};
  std::pair<incarnation, std::uint64_t> directory_; ///< coordinator and sequence of the newest heard
  bool over_ = false;                               ///< fenced, or left
  work_share share_;
  std::optional<compute_gradient> computing_; ///< until it has ended, whatever happens meanwhile
  protocol::time_point computing_since_{};
  straggler_help help_;
  shard_contacts contacts_;
  shard_connections connections_;
  shard_standings shards_;
  parameter_parts parts_;
  kept_gradients kept_;
  slot_warnings warnings_;
};

} // namespace dlrun::worker
