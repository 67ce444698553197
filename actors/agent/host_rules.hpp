/// How long the root waits for hosts, and by what it tells that one is lost.
#pragma once

#include "actors/protocol/time.hpp"

#include <chrono>

namespace dlrun::agent {

struct host_rules {
  /// From the start of a host's agent to its first word: it decodes and checks the data first.
  protocol::duration start_patience = std::chrono::seconds(60);
  /// How long a lost link may take to come back while beats tell that the host is there.
  protocol::duration link_patience = std::chrono::seconds(10);
  /// From its coming to its first answered beat; then no beats pass, and the next two rules hold.
  protocol::duration beats_patience = std::chrono::seconds(2);
  /// How long a lost link may take to come back where nothing else tells of the host.
  protocol::duration only_link_patience = std::chrono::seconds(1);
  /// Such a host says ten times a second that it is there.
  protocol::duration silence_max = std::chrono::seconds(3);
  /// Before the agent of a lost host is started again; doubles up to the second.
  protocol::duration retry_first = std::chrono::milliseconds(500);
  protocol::duration retry_max = std::chrono::seconds(15);
  /// How long the agents that an earlier root started have to come by themselves, before others are
  /// started, or the job goes on without those that joined. 0: there was none.
  protocol::duration reattach_patience{0};
  /// Ticks that far apart mean that this process was stopped: silence meanwhile proves nothing.
  protocol::duration own_pause_min = std::chrono::milliseconds(700);
};

} // namespace dlrun::agent
