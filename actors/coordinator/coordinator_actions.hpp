/// What coordinator_core tells its actor to do.
#pragma once

#include "actors/coordinator/fence_book.hpp"
#include "actors/coordinator/workforce.hpp"
#include "actors/protocol/end_messages.hpp"
#include "actors/protocol/local_messages.hpp"
#include "actors/protocol/membership_messages.hpp"
#include "actors/protocol/start_messages.hpp"

#include <iterator>
#include <variant>
#include <vector>

namespace dlrun::coordinator {

/// To the agent.
struct send_grant {
  protocol::grant grant;
};
/// To every joined role.
struct send_directory {
  protocol::directory directory;
};
/// Answer a join; `accepted` false: with the reason.
struct answer_join {
  protocol::role_name role;
  protocol::join_reply reply;
};
/// Workers keep dying in this slot: the directory asks who computes it to try its records first
/// (R18).
struct slot_suspected {
  protocol::suspect_slot what;
};
/// Tell the user: the journal is older than what runs (R41).
struct journal_is_older {
  protocol::role_name role; ///< whose start it does not know
  dlrun::incarnation start;
  dlrun::incarnation known; ///< the highest that it has issued for that role
};
/// Write to the journal, synced, then call on_fences_journaled(id). Nothing starts with a fence
/// before (R4).
struct journal_fences {
  std::uint64_t id = 0;
  std::vector<journaled_role> roles;
  /// R41: the journal is older than what runs. That its course is older too, and what the report
  /// says of it, are to be written in the same write: nobody notices it again.
  std::optional<journal_is_older> older{};
};
/// Start the dispatcher anew, so that it reads that its course is older.
struct restart_dispatcher {};
/// Write to the journal, synced, then call on_workers_journaled() (R32).
struct journal_workers {
  journaled_workers what;
};
/// To the agent.
struct send_start_over {
  protocol::start_over message;
};
/// To the agent and the dispatcher.
struct send_workers_wanted {
  protocol::workers_wanted message;
};
/// Write to the journal, synced, then call job_ending::on_end_journaled() (R19).
struct journal_end {
  protocol::job_ended ended;
};
/// Ask the shard for digests; repeated until answered by job_ending::on_digests().
struct request_digests {
  ps_shard_id shard;
  protocol::digest_request request;
};
/// The job is over: write the report, then call job_ending::on_report_written(). Given once.
struct finish_job {
  protocol::job_ended ended;
};
/// Tell the agent. Given again when the agent comes again.
struct announce_end {
  protocol::job_ended ended;
};

/// Those of protocol:: are messages to the dispatcher; close_training is repeated until answered by
/// job_ending::on_training_closed(), and given only where state is durable.
using coordinator_action =
    std::variant<send_grant, send_directory, answer_join, protocol::worker_available, protocol::worker_gone,
                 protocol::ps_shard_available, protocol::ps_shard_gone, slot_suspected,
                 protocol::poisoned_slot, journal_fences, journal_is_older, restart_dispatcher,
                 journal_workers, send_start_over, send_workers_wanted, journal_end, request_digests,
                 protocol::close_training, finish_job, announce_end>;
using coordinator_actions = std::vector<coordinator_action>;

inline void append(coordinator_actions& to, coordinator_actions more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

} // namespace dlrun::coordinator
