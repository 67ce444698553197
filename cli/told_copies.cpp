#include "cli/told_copies.hpp"

#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace dlrun::cli {
namespace {

using nlohmann::ordered_json;

/// "ps_shard 1 on gamma (whole)"
std::string place_of(const ordered_json& keeper) {
  const auto host = keeper.contains("store") ? keeper["store"].value("host", "?") : "no other host yet";
  return fmt::format("ps_shard {} on {} ({})", keeper.value("index", 0), host, keeper.value("state", "?"));
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

} // namespace

std::vector<std::string> tell_copies(const ordered_json& status) {
  std::vector<std::string> places, costs;
  for (const auto& role : status.value("roles", ordered_json::array())) {
    if (role.value("role", "?") != "keeper") continue;
    places.push_back(place_of(role));
    if (!role.contains("copy")) continue;
    const auto& copy = role["copy"];
    costs.push_back(fmt::format("copy of ps_shard {}: {} steps behind{}", role.value("index", 0),
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
  all.insert(all.begin(),
             safe.empty()
                 ? "no host may be lost now without losing a committed step"
                 : fmt::format("any one of these hosts may be lost now without losing a committed step: {}",
                               fmt::join(safe, ", ")));
  return all;
}

} // namespace dlrun::cli
