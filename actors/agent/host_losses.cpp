#include "actors/agent/host_losses.hpp"

#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

namespace dlrun::agent {

using protocol::role_kind;

std::map<std::string, std::string>
losses_by_host(const std::string& root, const std::vector<role_view>& roles, const placement& places) {
  std::map<std::uint32_t, std::set<std::string>> copies; // hosts of those that are whole, by PS shard
  for (const auto& one : roles)
    if (one.role.kind == role_kind::keeper && one.pid != 0 && one.state == "whole")
      copies[protocol::shard_of(one.role).value].insert(places.host_of(one.role));
  std::map<std::string, std::vector<std::uint32_t>> lost; // PS shards
  for (const auto& one : roles) {
    if (one.role.kind != role_kind::ps_shard) continue;
    const auto host = places.host_of(one.role);
    auto& elsewhere = copies[one.role.index];
    elsewhere.erase(host);
    if (elsewhere.empty()) lost[host].push_back(one.role.index);
  }
  std::map<std::string, std::string> all{{root, "the run folder, and with it the run"}};
  for (const auto& [host, shards] : lost)
    all.try_emplace(host, fmt::format("all that ps_shard {} has committed", fmt::join(shards, ", ")));
  return all;
}

} // namespace dlrun::agent
