/// What is told of hosts, and of the places of roles, for people and for events.jsonl.
#pragma once

#include "actors/agent/host_roster.hpp"
#include "actors/agent/placement.hpp"
#include "actors/protocol/event_messages.hpp"
#include "actors/protocol/host_messages.hpp"

#include <string>

namespace dlrun::agent {

/// Pure: each makes the event of its name; what is of the agent, which decides, names a host.
namespace host_events {

/// Of the agent itself.
protocol::job_event of_agent(std::string event, std::string text, protocol::event_place place = {});

protocol::job_event enrolled(const std::string& host, const std::string& address);
protocol::job_event joined(const std::string& host, const host_room& room);
/// Of a host that had not got the job's data.
protocol::job_event data_fetched(const protocol::host_joined& joined);
protocol::job_event not_started(const host_not_started& failed);
protocol::job_event gone(const host_lost& lost);
protocol::job_event leaves(const std::string& host);
/// Starts end there before they are up. @param why the last did  @param time for how long it gets none
protocol::job_event avoided(const std::string& host, const std::string& why, protocol::duration time);
/// Do its beats pass? @param root its host  @param beats_at where it hears beats  @param notice after
/// how long a loss is noticed without them
protocol::job_event beats(const host_beats& seen, const std::string& root, const std::string& beats_at,
                          protocol::duration notice);
protocol::job_event coordinator_stays(const std::string& root);

// of a start of a role
protocol::job_event placed(const protocol::role_name& role, const protocol::fence& self, const place& where);
protocol::job_event waits(const protocol::role_name& role, const protocol::fence& self,
                          const std::string& host, protocol::duration patience);
/// A keeper without another host than that of its PS shard.
protocol::job_event copy_waits(const protocol::role_name& keeper, const protocol::fence& self);
/// A worker, while no host is open that takes workers, and has GPUs if it needs one.
protocol::job_event worker_waits(const protocol::role_name& worker, const protocol::fence& self,
                                 bool need_gpus);
/// @param hosts_before that the run ever had, for people
protocol::job_event store_missing(const protocol::role_name& role, const protocol::fence& self,
                                  const std::string& hosts_before);

} // namespace host_events
} // namespace dlrun::agent
