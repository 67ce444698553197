#include "actors/agent/host_losses.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dlrun::agent {

using protocol::role_kind;

std::string lost_with(const std::string& host, const std::string& root, const std::vector<role_view>& roles,
                      const placement& places) {
  if (host == root) return "the run folder, and with it the run";
  std::vector<std::uint32_t> lost;
  for (const auto& one : roles) {
    if (one.role.kind != role_kind::ps_shard || places.host_of(one.role) != host) continue;
    const auto keeper = protocol::keeper_role({one.role.index});
    const bool has_copy = std::ranges::any_of(roles, [&](const role_view& other) {
      return other.role == keeper && other.pid != 0 && other.state == "whole";
    });
    if (!has_copy || places.host_of(keeper) == host) lost.push_back(one.role.index);
  }
  return lost.empty() ? "" : fmt::format("all that ps_shard {} has committed", fmt::join(lost, ", "));
}

} // namespace dlrun::agent
