/// What data_dispatcher_core and its parts tell their shell to do.
#pragma once

#include "actors/protocol/dispatch_messages.hpp"
#include "actors/protocol/end_messages.hpp"
#include "actors/protocol/local_messages.hpp"

#include <string>
#include <variant>
#include <vector>

namespace dlrun::data_dispatcher {

/// Send to the worker's newest start. The core repeats what has to be answered.
struct to_worker {
  worker_id to;
  std::variant<protocol::lease, protocol::evaluate, protocol::probe> message;
};
/// Send to the PS shard's newest start. The core repeats it until the shard's status shows it.
struct to_ps_shard {
  ps_shard_id to;
  std::variant<protocol::rewind, protocol::name_snapshot, protocol::floor, protocol::go_on, protocol::pin,
               protocol::probe>
      message;
};
/// Send to the coordinator. `timeline_started` and `evaluated` are journaled where state is
/// durable.
using to_coordinator =
    std::variant<protocol::training_progress, protocol::training_finished, protocol::training_closed,
                 protocol::evaluated, protocol::slots_redispatched, protocol::worker_contributed,
                 protocol::ps_shard_resumed, protocol::timeline_started, protocol::divergence,
                 protocol::stall>;

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
/// Something was decided, once: for the log. `event` is a stable name.
struct decision_made {
  std::string event;
  std::string reason;
  bool is_warning = false;
};

using data_dispatcher_action =
    std::variant<to_worker, to_ps_shard, to_coordinator, journal_course, decision_made>;
using data_dispatcher_actions = std::vector<data_dispatcher_action>;

} // namespace dlrun::data_dispatcher
