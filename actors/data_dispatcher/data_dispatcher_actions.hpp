/// What data_dispatcher_core and timeline_keeper tell their shell to do.
#pragma once

#include "actors/protocol/messages.hpp"
#include "actors/protocol/time.hpp"

#include <string>
#include <variant>
#include <vector>

namespace dlrun::data_dispatcher {

/// Send to the worker's newest start; repeated by the core until acknowledged.
struct send_lease {
  worker_id to;
  protocol::lease lease;
  std::string reason; ///< empty for a repeat; else logged once
};
struct order_evaluation {
  worker_id to;
  protocol::evaluate order;
};
/// Every shard stands at the last version; where state is durable: all have its snapshot, and the
/// evaluations are journaled (R19). Given once a timeline.
struct training_finished {
  timeline_id timeline;
  version_id version; ///< N, or where an evaluation stopped the training
};
/// The job may end on this timeline: nothing more is decided that could change what it has trained.
/// The answer to on_close().
struct training_closed {
  timeline_id timeline;
};
/// A validation result is there (and journaled where state is durable). Given once a version and
/// timeline.
struct evaluation_finished {
  protocol::evaluated result;
};
/// A worker that was lost has its slots with others now: every one of them is in a lease that its
/// worker has acknowledged. `after` = time since the notice of the loss. A worker should report its
/// status as soon as it takes a lease.
struct slots_redispatched {
  worker_id lost;
  dlrun::incarnation lost_incarnation;
  protocol::duration after;
};
/// The start of a worker made its first contribution to the training.
struct worker_contributed {
  protocol::first_contribution what;
};
/// A start of a PS shard has committed a version beyond the one it restored. Not for the first
/// start of a job.
struct ps_shard_resumed {
  ps_shard_id shard;
  dlrun::incarnation incarnation;
  version_id version;
};

// ---- of snapshots and rewinds; only where state is durable
// --------------------------------------------------------

/// What the journal holds of the training's course. All of it is replaced by one synced write.
struct journaled_course {
  protocol::history history = protocol::first_history();
  /// Those of the history, and those that wait for a rewind (R18). Sorted.
  std::vector<protocol::parked_slot> parked{};
  std::vector<protocol::evaluated> evaluations{}; ///< that are not void, ascending by version
  /// True when there was no journal although the job has run: history and parked slots are unknown
  /// (R20).
  bool lost = false;
  /// The end of the job is journaled. Not written with the course.
  bool ended = false;

  bool operator==(const journaled_course&) const = default;
};
/// Write `course` to the journal, synced, then call on_journaled(id). Nothing that depends on it is
/// ordered before (R15). A refused write means that a newer coordinator has the journal: this
/// process ends.
struct journal_course {
  std::uint64_t id = 0;
  journaled_course course;
};
struct send_rewind {
  ps_shard_id to;
  protocol::rewind message;
};
struct send_floor {
  ps_shard_id to;
  protocol::floor message;
};
struct send_go_on {
  ps_shard_id to;
  protocol::go_on message;
};
struct send_pin {
  ps_shard_id to;
  protocol::pin message;
};
struct send_name_snapshot {
  ps_shard_id to;
  protocol::name_snapshot message;
};
/// To a worker or PS shard.
struct send_probe {
  protocol::role_name to;
  protocol::probe message;
};
/// Training goes back to `branch`, and why; it is journaled. To be logged, counted, and told to the
/// coordinator.
struct timeline_started {
  timeline_id timeline;
  version_id branch;
  std::uint64_t steps_redone = 0; ///< the most that any shard had applied beyond `branch`
  std::string reason;
  bool on_purpose = false; ///< the operator wanted it
};
/// Something else was decided, once: for the log. `event` is a stable name.
struct decision_made {
  std::string event;
  std::string reason;
};

using data_dispatcher_action =
    std::variant<send_lease, order_evaluation, training_finished, training_closed, evaluation_finished,
                 slots_redispatched, worker_contributed, ps_shard_resumed, journal_course, send_rewind,
                 send_floor, send_go_on, send_pin, send_name_snapshot, send_probe, timeline_started,
                 decision_made>;
using data_dispatcher_actions = std::vector<data_dispatcher_action>;

} // namespace dlrun::data_dispatcher
