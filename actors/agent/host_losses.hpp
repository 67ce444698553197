/// What of a job would be lost with one of its hosts.
#pragma once

#include "actors/agent/placement.hpp"
#include "actors/agent/role_reports.hpp"

#include <string>
#include <vector>

namespace dlrun::agent {

/// Pure. What would be lost with that host and its disk now, for people; "": nothing that was
/// committed. The host of the root has the run folder. Of a PS shard it has all that was committed,
/// unless a keeper elsewhere has a whole copy.
/// @param roles as the agent shows them
std::string lost_with(const std::string& host, const std::string& root, const std::vector<role_view>& roles,
                      const placement& places);

} // namespace dlrun::agent
