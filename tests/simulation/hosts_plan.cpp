#include "tests/simulation/hosts_plan.hpp"

#include <algorithm>

namespace dlrun::simulation {

using protocol::duration;

std::string_view to_string(host_fault kind) {
  switch (kind) {
  case host_fault::lose_host: return "lose a host";
  case host_fault::lose_host_and_disk: return "lose a host with its disk";
  case host_fault::lose_for_ever: return "lose a host for ever";
  case host_fault::kill_host_agent: return "kill the agent of a host";
  case host_fault::cut_host: return "cut a host off";
  case host_fault::cut_between_hosts: return "cut two hosts from each other";
  case host_fault::cut_journal: return "cut a host from the journal";
  case host_fault::break_connection: return "break the connection to a host";
  case host_fault::stop_host: return "stop a host";
  case host_fault::stop_root: return "stop the root";
  case host_fault::kill_root: return "kill the root";
  }
  return "unknown";
}

namespace {

constexpr double drift_max = 0.05;

class host_fault_plan {
public:
  host_fault_plan(hosts_plan& plan, random_source& random, duration calm)
      : plan_(plan)
      , random_(random)
      , calm_(calm) {}

  /// With probability `on`, up to `most` times.
  void add(host_fault kind, double on, std::uint64_t most) {
    if (!random_.chance(on)) return;
    for (auto times = 1 + random_.below(most); times > 0; --times)
      plan_.faults.push_back(
          {duration(static_cast<std::int64_t>(static_cast<double>(calm_.count()) * random_.real())), kind});
  }

private:
  hosts_plan& plan_;
  random_source& random_;
  duration calm_;
};

} // namespace

hosts_plan draw_hosts(std::uint64_t seed, duration calm, bool journal_is_remote) {
  random_source random(mix(seed) ^ 0x4057540575U);
  hosts_plan plan;
  plan.count = random.pick({2U, 3U, 3U, 4U});
  for (std::uint32_t host = 0; host < plan.count; ++host)
    plan.clocks.push_back({std::chrono::seconds(random.below(36'000)),
                           random.chance(0.5) ? random.between(1 - drift_max, 1 + drift_max) : 1});
  if (random.chance(0.4)) plan.late_orders = random.between(0.02, 0.3);
  plan.takes_over = random.chance(0.6);
  host_fault_plan faults(plan, random, calm);
  faults.add(host_fault::lose_host, 0.4, 2);
  faults.add(host_fault::lose_host_and_disk, 0.25, 2);
  faults.add(host_fault::lose_for_ever, 0.15, 1);
  faults.add(host_fault::kill_host_agent, 0.4, 3);
  faults.add(host_fault::cut_host, 0.5, 3);
  faults.add(host_fault::cut_between_hosts, 0.4, 3);
  if (journal_is_remote) faults.add(host_fault::cut_journal, 0.5, 2);
  faults.add(host_fault::break_connection, 0.4, 3);
  faults.add(host_fault::stop_host, 0.4, 3);
  faults.add(host_fault::stop_root, 0.3, 2);
  faults.add(host_fault::kill_root, 0.3, 3);
  std::ranges::stable_sort(plan.faults, {}, &planned_host_fault::at);
  return plan;
}

agent::host_rules simulated_host_rules() {
  agent::host_rules rules;
  for (auto* time :
       {&rules.start_patience, &rules.link_patience, &rules.beats_patience, &rules.only_link_patience,
        &rules.silence_max, &rules.retry_first, &rules.retry_max, &rules.own_pause_min})
    *time /= faster;
  return rules;
}

agent::watch_rules simulated_watch_rules(protocol::planted_bug bug) {
  agent::watch_rules rules;
  for (auto* time : {&rules.period, &rules.silence_min, &rules.silence_max, &rules.borne, &rules.hang_max})
    *time /= faster;
  rules.bug = bug;
  return rules;
}

} // namespace dlrun::simulation
