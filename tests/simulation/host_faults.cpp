#include "tests/simulation/host_faults.hpp"

#include "tests/simulation/host_process.hpp"
#include "tests/simulation/root_process.hpp"
#include "tests/simulation/world.hpp"

#include <array>

namespace dlrun::simulation {
namespace {

using protocol::role_kind;

constexpr std::array kinds_on_hosts{role_kind::agent, role_kind::host_agent, role_kind::coordinator,
                                    role_kind::ps_shard, role_kind::worker};

} // namespace

void host_fault_injector::plan() {
  for (const auto& one : world_.plan().hosts.faults)
    world_.after(one.at, nullptr, [this, kind = one.kind] { inject(kind); });
}

/// Not the root's.
std::optional<std::uint32_t> host_fault_injector::some_host() {
  std::vector<std::uint32_t> all;
  for (std::uint32_t host = 1; host < world_.hosts().count(); ++host)
    if (world_.hosts().is_up(host)) all.push_back(host);
  if (all.empty()) return std::nullopt;
  return world_.random().pick(all);
}

void host_fault_injector::inject(host_fault kind) {
  world_.say(nullptr, "FAULT: {}", to_string(kind));
  if (kind == host_fault::stop_root) return stop_for_a_while(0);
  if (kind == host_fault::kill_root) return kill_root();
  if (kind == host_fault::cut_journal) return cut_journal();
  if (kind == host_fault::cut_between_hosts) return cut_between_hosts();
  const auto host = some_host();
  if (!host) return;
  switch (kind) {
  case host_fault::lose_host: return lose(*host, false, false);
  case host_fault::lose_host_and_disk: return lose(*host, true, false);
  case host_fault::lose_for_ever: return lose(*host, world_.random().chance(0.5), true);
  case host_fault::kill_host_agent:
    for (auto* one : world_.living(host_agent_role(*host))) world_.kill(*one, "killed by signal 9 (SIGKILL)");
    return;
  case host_fault::cut_host: return cut_host(*host);
  case host_fault::break_connection: return break_connection(*host);
  case host_fault::stop_host: return stop_for_a_while(*host);
  default: return;
  }
}

// ---- hosts

std::vector<process*> host_fault_injector::all_of(std::uint32_t host) const {
  std::vector<process*> all;
  for (const auto kind : kinds_on_hosts)
    for (auto* one : world_.living(kind))
      if (one->host() == host) all.push_back(one);
  return all;
}

void host_fault_injector::end_all_of(std::uint32_t host, const char* why) {
  for (auto* one : all_of(host)) world_.kill(*one, why);
}

/// A run that has not begun needs all hosts of its list.
void host_fault_injector::lose(std::uint32_t host, bool with_disk, bool for_ever) {
  const auto* root = root_();
  if (for_ever && (root == nullptr || !root->has_begun())) return;
  auto& hosts = world_.hosts();
  world_.say(nullptr, "host {} is lost{}{}", name_of_host(host), with_disk ? " with its disk" : "",
             for_ever ? " for ever" : "");
  if (for_ever)
    hosts.lose_for_ever(host, world_.now());
  else
    hosts.take_down(host, world_.now());
  end_all_of(host, "its host is lost");
  world_.happened().worker_lost = true;
  world_.stores().lose(host, with_disk, world_.random(), world_.happened());
  if (for_ever) return;
  const bool is_long = world_.random().chance(0.2); // longer than a PS shard waits for its store
  const auto time = is_long ? world_.random().milliseconds(300, 900) : world_.random().milliseconds(5, 200);
  world_.after(time, nullptr, [this, host] { world_.hosts().bring_up(host, world_.now()); });
}

void host_fault_injector::cut_power() {
  for (std::uint32_t host = 0; host < world_.hosts().count(); ++host) {
    end_all_of(host, "power cut");
    world_.stores().lose(host, false, world_.random(), world_.happened());
  }
}

/// The agents of hosts live on until they have been without a root for too long.
void host_fault_injector::kill_root() {
  auto* root = root_();
  if (root == nullptr) return;
  end_all_of(0, "killed with the root");
  world_.happened().worker_lost = world_.happened().ps_shard_lost = true;
  for (const auto kind : {role_kind::coordinator, role_kind::ps_shard, role_kind::worker})
    for (auto* one : world_.living(kind)) one->taken_for_dead = true; // by the next root
  world_.after(world_.random().milliseconds(1, 50), nullptr, resume_);
}

// ---- links

void host_fault_injector::cut_for_a_while(std::vector<std::pair<std::uint32_t, std::uint32_t>> ways) {
  world_.happened().worker_lost = true; // or silent for so long that it may count as lost
  for (const auto& [from, to] : ways) {
    world_.say(nullptr, "nothing passes from {} to {}", from, to);
    world_.hosts().cut(from, to, world_.now());
  }
  world_.after(world_.random().milliseconds(10, 300), nullptr, [this, ways = std::move(ways)] {
    for (const auto& [from, to] : ways) world_.hosts().mend(from, to, world_.now());
  });
}

void host_fault_injector::cut_host(std::uint32_t host) {
  const auto way = world_.random().below(3); // 0: both, 1: it is deaf, 2: it is mute
  const bool from_all = world_.random().chance(0.6);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ways;
  for (std::uint32_t other = 0; other < world_.hosts().count(); ++other) {
    if (other == host || (other != 0 && !from_all)) continue;
    if (way != 1) ways.emplace_back(host, other);
    if (way != 2) ways.emplace_back(other, host);
  }
  cut_for_a_while(std::move(ways));
}

void host_fault_injector::cut_between_hosts() {
  const auto one = some_host();
  const auto other = some_host();
  if (!one || one == other) return;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ways{{*one, *other}};
  if (world_.random().chance(0.5)) ways.emplace_back(*other, *one);
  cut_for_a_while(std::move(ways));
}

void host_fault_injector::cut_journal() {
  auto host = static_cast<std::uint32_t>(world_.random().below(world_.hosts().count()));
  const auto* coordinator = world_.newest(coordinator_role);
  if (coordinator != nullptr && world_.random().chance(0.7)) host = coordinator->host();
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ways;
  const auto way = world_.random().below(3);
  if (way != 1) ways.emplace_back(host, cluster_hosts::journal);
  if (way != 2) ways.emplace_back(cluster_hosts::journal, host);
  cut_for_a_while(std::move(ways));
}

/// Both ends see it, each in its own time.
void host_fault_injector::break_connection(std::uint32_t host) {
  auto* root = root_();
  if (root == nullptr) return;
  world_.after(world_.delay(), root, [root, host] { root->lose_link(host); });
  for (auto* one : world_.living(host_agent_role(host)))
    world_.after(world_.delay(), one, [one] { static_cast<host_process*>(one)->lose_link(); });
}

// ---- SIGSTOP

void host_fault_injector::stop_for_a_while(std::uint32_t host) {
  if (world_.hosts().is_stopped(host)) return;
  const auto stopped = all_of(host);
  auto* root = root_();
  world_.happened().worker_lost = true;
  for (auto* one : stopped) one->freeze();
  world_.hosts().stop(host, world_.now());
  if (host == 0 && root != nullptr) root->checks().root_stopped();
  world_.after(world_.random().milliseconds(3, 200), nullptr, [this, stopped, host, root] {
    world_.hosts().go_on(host, world_.now());
    if (host == 0 && root != nullptr) root->checks().root_goes_on();
    for (auto* one : stopped) one->thaw();
  });
}

} // namespace dlrun::simulation
