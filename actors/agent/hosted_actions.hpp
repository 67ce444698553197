/// What the agent of the job does about other hosts, as its core decides.
#pragma once

#include "actors/agent/host_roster.hpp"
#include "actors/agent/role_end.hpp"
#include "actors/protocol/event_messages.hpp"
#include "actors/protocol/host_messages.hpp"

#include <string>
#include <variant>
#include <vector>

namespace dlrun::agent {

/// Of a start_order the shell adds the credentials.
struct to_host {
  std::string host;
  std::variant<protocol::start_order, protocol::stop_order, protocol::start_told, protocol::dismissal>
      message;
};
/// Start it here, on the root's host.
struct start_here {
  protocol::role_name role;
  protocol::fence self;
};
/// As a launcher tells it: it runs, it could not be started, or it is over.
struct role_runs {
  std::int32_t pid = 0;
};
struct tell_launch {
  protocol::role_name role;
  protocol::fence self;
  std::variant<role_runs, error, role_end> what;
};
/// Exchange beats with that start of the host's agent; answer with on_sighting().
struct watch_beats {
  std::string host;
  std::uint64_t boot = 0;
};
struct forget_beats {
  std::string host;
};
/// A job_event is for the user.
using hosted_action = std::variant<to_host, start_here, tell_launch, protocol::job_event, run_command,
                                   kill_command, end_command, watch_beats, forget_beats>;
using hosted_actions = std::vector<hosted_action>;

} // namespace dlrun::agent
