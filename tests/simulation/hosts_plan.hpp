/// What a seed decides of several hosts: how many, their clocks, what befalls them.
#pragma once

#include "actors/agent/beats/peer_watch.hpp"
#include "actors/agent/host_roster.hpp"
#include "tests/simulation/random_source.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace dlrun::simulation {

enum class host_fault : std::uint8_t {
  lose_host, ///< it comes back with its disk, without what was not synced
  lose_host_and_disk,
  lose_for_ever,     ///< it does not come back
  kill_host_agent,   ///< and so all that it runs
  cut_host,          ///< from the root: to it, from it, or both; from other hosts too, or not
  cut_between_hosts, ///< that both reach the root
  cut_journal,       ///< from one host; where the journal is elsewhere
  break_connection,  ///< between the root and the agent of a host; packets pass
  stop_host,         ///< SIGSTOP of all that runs there
  stop_root,         ///< the same of the root's host
  kill_root,         ///< and what it runs; `dlrun resume` follows, while the agents of hosts live on
};
inline constexpr int host_fault_kinds = 11;
std::string_view to_string(host_fault kind);

struct planned_host_fault {
  protocol::duration at{};
  host_fault kind = host_fault::lose_host;
};

/// A steady clock: what it shows since some moment of its own, and how fast it runs.
struct host_clock {
  protocol::duration ahead{};
  double rate = 1;
};

struct hosts_plan {
  std::uint32_t count = 1;        ///< with that of the root, whose number is 0
  std::vector<host_clock> clocks; ///< one a host
  /// A root that follows another one goes on with what that started (R35); else with another
  /// authority, so that nobody of its time reaches it.
  bool takes_over = false;
  double late_orders = 0; ///< probability that an order of the root comes again, long after
  std::vector<planned_host_fault> faults;

  bool are_several() const { return count > 1; }
};

/// From numbers of its own. Faults are over by `calm`.
hosts_plan draw_hosts(std::uint64_t seed, protocol::duration calm, bool journal_is_remote);

/// A clock that has run for a while, as that of a real machine.
inline constexpr protocol::time_point beginning{std::chrono::hours(1)};

// ---- the product's times, all a twentieth, as faults come in fractions of a second here

inline constexpr int faster = 20;
inline std::string name_of_host(std::uint32_t host) { return std::string(1, static_cast<char>('a' + host)); }
inline std::uint32_t host_of_name(const std::string& name) {
  return static_cast<std::uint32_t>(name.at(0) - 'a');
}
agent::host_rules simulated_host_rules();
agent::watch_rules simulated_watch_rules(protocol::planted_bug bug);
inline constexpr protocol::duration host_tick = std::chrono::milliseconds(100 / faster);
inline constexpr protocol::duration store_patience = std::chrono::milliseconds(10'000 / faster);
inline constexpr protocol::duration orphan_grace = std::chrono::milliseconds(10'000 / faster);
inline constexpr protocol::duration reattach_patience = std::chrono::milliseconds(2000 / faster);
inline constexpr protocol::duration order_again_after = std::chrono::milliseconds(500 / faster);
/// How long the connection of a host that is out of reach lasts: 1 to 3 s.
inline constexpr double connection_ms_min = 1000.0 / faster;
inline constexpr double connection_ms_max = 3000.0 / faster;
/// A new agent waits so long for the folder that another one has.
inline constexpr protocol::duration folder_patience = std::chrono::milliseconds(15'000 / faster);

} // namespace dlrun::simulation
