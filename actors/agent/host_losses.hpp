/// What of a job would be lost with each of its hosts.
#pragma once

#include "actors/agent/placement.hpp"
#include "actors/agent/role_reports.hpp"

#include <map>
#include <string>
#include <vector>

namespace dlrun::agent {

/// Pure. What would be lost with each host and its disk now, for people; of a host that is not
/// named nothing that was committed. The host of the root has the run folder. Of a PS shard its
/// host has all that was committed, unless a keeper elsewhere has a whole copy.
/// @param roles as the agent shows them
std::map<std::string, std::string>
losses_by_host(const std::string& root, const std::vector<role_view>& roles, const placement& places);

} // namespace dlrun::agent
