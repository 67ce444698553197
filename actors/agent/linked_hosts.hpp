/// Through whom other hosts are reached.
#pragma once

#include "actors/agent/host_roster.hpp"
#include "actors/agent/log_collector.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace dlrun::agent {

/// The newest agent of each other host that has joined, whether it is there or not: the roster says
/// that. Called by the agent actor only.
class linked_hosts {
public:
  struct link {
    std::uint64_t boot = 0;
    protocol::host_agent_actor agent;
  };

  /// @param roster outlives this
  /// @param folder_of the run, on each other host; "" for what is none of its hosts
  linked_hosts(const host_roster& roster, std::function<std::string(const std::string& host)> folder_of)
      : roster_{roster}
      , folder_of_{std::move(folder_of)} {}

  void put(const std::string& host, std::uint64_t boot, const protocol::host_agent_actor& who) {
    links_[host] = {boot, who};
  }
  /// Null before its agent has joined.
  const link* find(const std::string& host) const;
  /// Of the agent of this boot; "" when there is none.
  std::string host_of(std::uint64_t boot) const;
  /// Of the agent that was reached there; "" when that is none of them.
  std::string host_of(const caf::actor_addr& who) const;

  /// @returns bad_usage for a host that is none of this job's, role_lost for one that is away,
  /// interrupted when the job is over.
  result<protocol::host_agent_actor> agent_of(const std::string& host) const;
  /// Those that have joined, with the logs of what ran there.
  std::vector<logging_host> with_logs() const;
  /// The job is over.
  void close() { is_closed_ = true; }

private:
  const host_roster& roster_;
  std::function<std::string(const std::string& host)> folder_of_;
  std::map<std::string, link> links_;
  bool is_closed_ = false;
};

} // namespace dlrun::agent
