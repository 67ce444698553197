/// Which role may send which message to whom, from another process: what a control connection lets
/// through. What is not named here stays within its process.
#pragma once

#include "actors/protocol/handles.hpp"

#include <initializer_list>

namespace dlrun::protocol {

/// Kinds of roles.
class role_set {
public:
  constexpr role_set(std::initializer_list<role_kind> kinds) {
    for (const auto kind : kinds) bits_ |= bit(kind);
  }
  constexpr bool contains(role_kind kind) const { return (bits_ & bit(kind)) != 0; }
  constexpr bool is_empty() const { return bits_ == 0; }

private:
  static constexpr std::uint32_t bit(role_kind kind) { return 1U << static_cast<unsigned>(kind); }
  std::uint32_t bits_ = 0;
};

/// The roles whose processes may send `Message` to a `Receiver`. The data dispatcher is in the
/// coordinator's process.
template <class Receiver, class Message>
inline constexpr role_set senders{};

/// Messages whose `role` and `incarnation` must be those of the process that they come from. Of
/// others the kind of role is enough.
template <class Message>
inline constexpr bool names_its_sender = false;
template <>
inline constexpr bool names_its_sender<credentials_wanted> = true;
template <>
inline constexpr bool names_its_sender<copy_part> = true;
template <>
inline constexpr bool names_its_sender<copy_standing> = true;

// ---- to the data dispatcher
template <>
inline constexpr role_set senders<data_dispatcher_actor, worker_status>{role_kind::worker};
template <>
inline constexpr role_set senders<data_dispatcher_actor, shard_status>{role_kind::ps_shard};
template <>
inline constexpr role_set senders<data_dispatcher_actor, evaluated>{role_kind::worker};
template <>
inline constexpr role_set senders<data_dispatcher_actor, kept>{role_kind::worker};
template <>
inline constexpr role_set senders<data_dispatcher_actor, divergence>{role_kind::worker, role_kind::ps_shard};

// ---- to a worker
template <>
inline constexpr role_set senders<worker_actor, shard_state>{role_kind::ps_shard};
template <>
inline constexpr role_set senders<worker_actor, lease>{role_kind::coordinator};
template <>
inline constexpr role_set senders<worker_actor, directory>{role_kind::coordinator};
template <>
inline constexpr role_set senders<worker_actor, fenced>{role_kind::ps_shard};
template <>
inline constexpr role_set senders<worker_actor, evaluate>{role_kind::coordinator};
template <>
inline constexpr role_set senders<worker_actor, snapshot_offer>{role_kind::ps_shard};
template <>
inline constexpr role_set senders<worker_actor, probe>{role_kind::coordinator};

// ---- to a PS shard
template <>
inline constexpr role_set senders<ps_shard_actor, push>{role_kind::worker};
template <>
inline constexpr role_set senders<ps_shard_actor, pull>{role_kind::worker};
template <>
inline constexpr role_set senders<ps_shard_actor, directory>{role_kind::coordinator};
template <>
inline constexpr role_set senders<ps_shard_actor, digest_request>{role_kind::coordinator};
template <>
inline constexpr role_set senders<ps_shard_actor, snapshot_request>{role_kind::worker};
template <>
inline constexpr role_set senders<ps_shard_actor, go_on>{role_kind::coordinator};
template <>
inline constexpr role_set senders<ps_shard_actor, rewind>{role_kind::coordinator};
template <>
inline constexpr role_set senders<ps_shard_actor, name_snapshot>{role_kind::coordinator};
template <>
inline constexpr role_set senders<ps_shard_actor, protocol::floor>{role_kind::coordinator};
template <>
inline constexpr role_set senders<ps_shard_actor, pin>{role_kind::coordinator};
template <>
inline constexpr role_set senders<ps_shard_actor, probe>{role_kind::coordinator};
template <>
inline constexpr role_set senders<ps_shard_actor, norm>{role_kind::ps_shard};
template <>
inline constexpr role_set senders<ps_shard_actor, norm_request>{role_kind::ps_shard};
template <>
inline constexpr role_set senders<ps_shard_actor, copy_standing>{role_kind::keeper};

// ---- to a keeper
template <>
inline constexpr role_set senders<keeper_actor, copy_part>{role_kind::ps_shard};

// ---- to the coordinator
template <>
inline constexpr role_set senders<coordinator_actor, join>{role_kind::worker, role_kind::ps_shard};
template <>
inline constexpr role_set senders<coordinator_actor, role_started>{role_kind::agent};
template <>
inline constexpr role_set senders<coordinator_actor, role_exited>{role_kind::agent};
template <>
inline constexpr role_set senders<coordinator_actor, stop_job>{role_kind::agent};
template <>
inline constexpr role_set senders<coordinator_actor, scale_job>{role_kind::agent};
template <>
inline constexpr role_set senders<coordinator_actor, journal_part_wanted>{role_kind::agent};

// ---- to the agent
template <>
inline constexpr role_set senders<agent_actor, join>{role_kind::coordinator};
template <>
inline constexpr role_set senders<agent_actor, grant>{role_kind::coordinator};
template <>
inline constexpr role_set senders<agent_actor, start_over>{role_kind::coordinator};
template <>
inline constexpr role_set senders<agent_actor, workers_wanted>{role_kind::coordinator};
template <>
inline constexpr role_set senders<agent_actor, job_event>{role_kind::coordinator, role_kind::ps_shard};
template <>
inline constexpr role_set senders<agent_actor, stall>{role_kind::coordinator};
template <>
inline constexpr role_set senders<agent_actor, job_ended>{role_kind::coordinator};
template <>
inline constexpr role_set senders<agent_actor, heartbeat>{role_kind::coordinator, role_kind::ps_shard,
                                                          role_kind::worker, role_kind::keeper};
template <>
inline constexpr role_set senders<agent_actor, stop_job>{role_kind::ps_shard, role_kind::worker};
template <>
inline constexpr role_set senders<agent_actor, host_joined>{role_kind::host_agent};
template <>
inline constexpr role_set senders<agent_actor, start_report>{role_kind::host_agent};
template <>
inline constexpr role_set senders<agent_actor, work_report>{role_kind::host_agent};
template <>
inline constexpr role_set senders<agent_actor, credentials_wanted>{
    role_kind::coordinator, role_kind::ps_shard, role_kind::worker, role_kind::host_agent, role_kind::keeper};
template <>
inline constexpr role_set senders<agent_actor, report_part>{role_kind::coordinator};

// ---- to the agent of another host
template <>
inline constexpr role_set senders<host_agent_actor, start_order>{role_kind::agent};
template <>
inline constexpr role_set senders<host_agent_actor, stop_order>{role_kind::agent};
template <>
inline constexpr role_set senders<host_agent_actor, start_told>{role_kind::agent};
template <>
inline constexpr role_set senders<host_agent_actor, store_listing_wanted>{role_kind::agent};
template <>
inline constexpr role_set senders<host_agent_actor, store_part_wanted>{role_kind::agent};
template <>
inline constexpr role_set senders<host_agent_actor, log_listing_wanted>{role_kind::agent};
template <>
inline constexpr role_set senders<host_agent_actor, log_part_wanted>{role_kind::agent};
template <>
inline constexpr role_set senders<host_agent_actor, snapshots_wanted>{role_kind::agent};
template <>
inline constexpr role_set senders<host_agent_actor, snapshot_part_wanted>{role_kind::agent};
template <>
inline constexpr role_set senders<host_agent_actor, dismissal>{role_kind::agent};

} // namespace dlrun::protocol
