/// What goes over the simulated network: the product's messages, with the memory that some of them
/// name.
#pragma once

#include "actors/agent/beats/beat_wire.hpp"
#include "actors/protocol/dispatch_messages.hpp"
#include "actors/protocol/end_messages.hpp"
#include "actors/protocol/heartbeat_messages.hpp"
#include "actors/protocol/host_messages.hpp"
#include "actors/protocol/membership_messages.hpp"
#include "actors/protocol/scale_messages.hpp"
#include "actors/protocol/start_messages.hpp"
#include "actors/protocol/step_messages.hpp"
#include "tests/simulation/memory.hpp"

#include <memory>
#include <variant>

namespace dlrun::simulation {

/// The agent is there (the start of the coordinator's connection to it).
struct agent_hello {
  std::uint64_t agent = 0; ///< its number
};
/// Where the coordinator is, as the agent knows; in the answers to heartbeats.
struct coordinator_moved {
  protocol::known_coordinator coordinator;
};
/// Goes to the start that asked, not to its role.
struct answered_join {
  incarnation asker;
  protocol::known_coordinator coordinator;
  protocol::join_reply reply;
};
/// For an evaluation: give me the snapshot of this version, and the answer.
struct snapshot_pull {
  protocol::evaluate of;
};
struct snapshot_part {
  ps_shard_id shard;
  protocol::evaluate of;
  value content = 0;
};
struct gradient_push {
  protocol::push push;
  std::shared_ptr<gradient_memory> memory;
  std::size_t buffer = 0;
};
struct announced_state {
  protocol::shard_state state;
  std::shared_ptr<parameter_memory> memory;
};
struct shard_digests {
  ps_shard_id shard;
  protocol::digest_reply reply;
};

/// A datagram between the root and the agent of a host.
struct host_beat {
  agent::beat what;
};
/// From a host's agent that the `root`th agent of the job has started.
struct host_hello {
  std::uint64_t root = 0;
  protocol::host_joined joined;
};
struct host_report {
  std::uint64_t root = 0;
  protocol::start_report report;
};
struct host_work {
  std::uint64_t root = 0;
  protocol::work_report work;
};
/// To that start of the host's agent.
struct answered_hello {
  std::uint64_t boot = 0;
  protocol::join_reply reply;
};

using message =
    std::variant<agent_hello, protocol::grant, protocol::role_started, protocol::role_exited, protocol::join,
                 answered_join, protocol::directory, protocol::lease, protocol::worker_status, gradient_push,
                 protocol::pull, announced_state, protocol::fenced, protocol::shard_status,
                 protocol::evaluate, protocol::evaluated, protocol::digest_request, shard_digests,
                 coordinator_moved, protocol::job_ended, snapshot_pull, snapshot_part, protocol::rewind,
                 protocol::name_snapshot, protocol::floor, protocol::go_on, protocol::pin, protocol::probe,
                 protocol::kept, protocol::norm, protocol::norm_request, protocol::scale_job,
                 protocol::start_over, protocol::workers_wanted, protocol::heartbeat, protocol::stop_job,
                 host_beat, host_hello, host_report, host_work, answered_hello, protocol::start_order,
                 protocol::stop_order, protocol::start_told, protocol::dismissal>;

} // namespace dlrun::simulation
