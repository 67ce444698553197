#include "tests/simulation/agent_commands.hpp"

#include "tests/simulation/host_process.hpp"
#include "tests/simulation/world.hpp"

#include <vector>

namespace dlrun::simulation {
namespace {

/// Until the end of an agent is known where nothing passes.
constexpr auto unseen_end_after = std::chrono::milliseconds(100);

} // namespace

void agent_commands::run(std::uint32_t host, std::uint64_t attempt) {
  running_[host] = {.attempt = attempt};
  const auto time = world_.random().milliseconds(0.5, 1.5) * world_.plan().start_ms;
  world_.after(std::chrono::duration_cast<protocol::duration>(time), &root_,
               [this, host, attempt] { try_to_start(host, attempt, world_.now() + folder_patience); });
}

void agent_commands::kill(std::uint32_t host, std::uint64_t attempt) {
  const auto at = running_.find(host);
  if (at != running_.end() && at->second.attempt == attempt) running_.erase(at);
}

void agent_commands::end(std::uint32_t host, const std::string& why) {
  const auto attempt = running_.at(host).attempt;
  running_.erase(host);
  tell_(host, attempt, why);
}

void agent_commands::try_to_start(std::uint32_t host, std::uint64_t attempt, protocol::time_point due) {
  const auto at = running_.find(host);
  if (at == running_.end() || at->second.attempt != attempt) return;
  auto& hosts = world_.hosts();
  if (!hosts.is_up(host) || !hosts.passes_both_ways(0, host)) return end(host, "exited with 255");
  if (!hosts.is_stopped(host) && world_.living(host_agent_role(host)).empty()) {
    at->second.agent = &world_.start<host_process>(host, world_.hosts().next_boot(), number_);
    return;
  }
  if (world_.now() >= due) return end(host, "exited with 2: another agent uses the folder");
  world_.after(host_tick, &root_, [this, host, attempt, due] { try_to_start(host, attempt, due); });
}

void agent_commands::tick() {
  std::vector<std::uint32_t> over;
  for (auto& [host, one] : running_) {
    if (one.agent == nullptr || one.agent->alive) continue;
    if (!one.agent_gone) one.agent_gone = world_.now();
    const bool is_seen = world_.hosts().is_up(host) && world_.hosts().passes_both_ways(0, host);
    if (is_seen || world_.now() - *one.agent_gone > unseen_end_after) over.push_back(host);
  }
  for (const auto host : over) end(host, "exited with 1");
}

} // namespace dlrun::simulation
