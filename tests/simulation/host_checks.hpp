/// What must hold of the root's view of other hosts (R29, R30).
#pragma once

#include "actors/agent/host_roster.hpp"
#include "actors/protocol/event_messages.hpp"
#include "actors/protocol/roles.hpp"
#include "tests/simulation/cluster_hosts.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>

namespace dlrun::simulation {

class world;

class host_checks {
public:
  host_checks(world& where, const agent::host_roster& roster);

  /// The root is stopped, goes on.
  void root_stopped();
  void root_goes_on();
  /// That start of a PS shard is wanted.
  void asked(const protocol::role_name& role, incarnation start);
  /// R30: it is ordered on `host`, which has the best store, or the host that has it was waited
  /// for.
  /// @throws violation, as all here.
  void check_place(const protocol::role_name& role, incarnation start, std::uint32_t host);
  /// R29: a host that cannot answer is given up in time. @param joined when that boot came
  void check_silence(std::uint32_t host, protocol::time_point joined) const;
  /// R29: one that is given up for its silence could not answer, or that start of its agent is
  /// over.
  void check_loss(const protocol::job_event& lost, std::uint64_t boot) const;

private:
  std::optional<std::uint32_t> better_than(ps_shard_id shard, std::uint32_t host) const;

  world& world_;
  const agent::host_roster& roster_;
  protocol::time_point stopped_at_{};
  protocol::time_point runs_since_{};
  std::map<std::pair<protocol::role_name, incarnation>, protocol::time_point> asked_;
  std::map<protocol::role_name, std::uint32_t> places_; ///< of the last start of each PS shard
  std::set<std::tuple<protocol::role_name, incarnation, std::uint32_t>> ordered_; ///< orders are repeated
};

} // namespace dlrun::simulation
