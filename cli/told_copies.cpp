#include "cli/told_copies.hpp"

#include "actors/protocol/roles.hpp"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <nlohmann/json.hpp>

namespace dlrun::cli {
namespace {

using nlohmann::ordered_json;

protocol::role_name role_of(const ordered_json& keeper) {
  return {protocol::role_kind::keeper, keeper.value("index", 0U)};
}

/// "ps_shard 1 on gamma (whole)"
std::string place_of(const ordered_json& keeper) {
  const auto host = keeper.contains("store") ? keeper["store"].value("host", "?") : "no other host yet";
  return fmt::format("ps_shard {} on {} ({})", protocol::shard_of(role_of(keeper)), host,
                     keeper.value("state", "?"));
}

std::string cost_of(const ordered_json& copy) {
  if (!copy.contains("waited")) return "";
  return fmt::format(
      "; {:.2f} MB a step at {:.2f} MB/s, on its way {:.0f} % of the time; steps of {:.1f} ms wait "
      "for it {:.0f} % of the time{}",
      copy.value("bytes_per_step", 0.0) / 1e6, copy.value("bytes_per_second", 0.0) / 1e6,
      100 * copy.value("busy", 0.0), copy.value("step_ms", 0.0), 100 * copy.value("waited", 0.0),
      copy.value("slow", false) ? ": that is much" : "");
}

/// Of hosts that have no more than one store of each PS shard: what is on another host of one is a
/// whole copy.
std::size_t count_spare(const ordered_json& status) {
  std::map<std::uint32_t, std::size_t> whole;
  for (const auto& role : status.value("roles", ordered_json::array())) {
    const auto kind = role.value("role", "?");
    if (kind == "ps_shard") whole.try_emplace(role.value("index", 0U));
    if (kind == "keeper" && role.value("state", "?") == "whole")
      ++whole[protocol::shard_of(role_of(role)).value];
  }
  const auto least = std::ranges::min_element(whole, {}, [](const auto& entry) { return entry.second; });
  return least == whole.end() ? 0 : least->second;
}

} // namespace

std::vector<std::string> tell_copies(const ordered_json& status) {
  std::vector<std::string> places, costs;
  for (const auto& role : status.value("roles", ordered_json::array())) {
    if (role.value("role", "?") != "keeper") continue;
    places.push_back(place_of(role));
    if (!role.contains("copy")) continue;
    const auto& copy = role["copy"];
    const auto name = protocol::copy_name(role_of(role));
    costs.push_back(fmt::format("{}: {} steps behind{}", name.substr(name.find("copy")),
                                copy.value("behind", std::uint64_t{0}), cost_of(copy)));
  }
  if (places.empty()) return {};
  std::vector<std::string> all{fmt::format("copies: {}", fmt::join(places, ", "))};
  all.insert(all.end(), costs.begin(), costs.end());
  return all;
}

std::vector<std::string> tell_losses(const ordered_json& status) {
  if (!status.contains("hosts") || status.value("status", "") == "waiting") return {};
  std::vector<std::string> safe, all;
  for (const auto& host : status["hosts"]) {
    const auto name = host.value("name", "?");
    if (host.contains("loses"))
      all.push_back(fmt::format("with {} would be lost: {}", name, host.value("loses", "?")));
    else if (host.value("state", "?") == "there")
      safe.push_back(name);
  }
  const auto at_once = std::min(count_spare(status), safe.size());
  const auto which = at_once > 1 ? fmt::format("any {} of these hosts may be lost at once", at_once)
                                 : std::string{"any one of these hosts may be lost"};
  all.insert(all.begin(), safe.empty() ? "no host may be lost now without losing a committed step"
                                       : fmt::format("{} now without losing a committed step: {}", which,
                                                     fmt::join(safe, ", ")));
  return all;
}

} // namespace dlrun::cli
