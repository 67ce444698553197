#include "actors/agent/linked_hosts.hpp"

#include <fmt/format.h>

namespace dlrun::agent {

const linked_hosts::link* linked_hosts::find(const std::string& host) const {
  const auto found = links_.find(host);
  return found == links_.end() ? nullptr : &found->second;
}

std::string linked_hosts::host_of(std::uint64_t boot) const {
  for (const auto& [host, link] : links_)
    if (link.boot == boot) return host;
  return "";
}

std::string linked_hosts::host_of(const caf::actor_addr& who) const {
  for (const auto& [host, link] : links_)
    if (link.agent && link.agent.address() == who) return host;
  return "";
}

result<protocol::host_agent_actor> linked_hosts::agent_of(const std::string& host) const {
  if (is_closed_) return fail(error_code::interrupted, "the job is over");
  if (folder_of_(host).empty())
    return fail(error_code::bad_usage, fmt::format("host {} is none of the job's now", host));
  const auto* link = find(host);
  if (link == nullptr || !link->agent || roster_.boot_of(host) != link->boot)
    return fail(error_code::role_lost, "that host is away");
  return link->agent;
}

std::vector<logging_host> linked_hosts::with_logs() const {
  std::vector<logging_host> all;
  for (const auto& [host, link] : links_)
    all.push_back({host, folder_of_(host), agent_of(host).value_or(protocol::host_agent_actor{})});
  return all;
}

} // namespace dlrun::agent
