/// The starts of roles that the agent has in hand, and what is known of each.
#pragma once

#include "actors/agent/copy_board.hpp"
#include "actors/agent/life_signs.hpp"
#include "actors/agent/managed_roles.hpp"
#include "actors/agent/role_reports.hpp"
#include "actors/protocol/heartbeat_messages.hpp"
#include "actors/protocol/host_messages.hpp"
#include "actors/protocol/membership_messages.hpp"
#include "actors/protocol/time.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace dlrun::agent {

/// Pure: where a start of a role begins, is heard of and ends, so that all that is kept of it
/// agrees. It decides nothing.
class role_book {
public:
  role_book(life_rules life, std::uint32_t ps_shards)
      : signs_{life}
      , reports_{ps_shards} {}

  // a start, from its begin to its end
  /// R35: that start runs on another host. @returns false when there is no such role, yet
  bool adopt(const protocol::running_start& one, protocol::time_point now);
  /// The next start of a role begins, if it is wanted and there is a fence for it. @returns whether
  bool begin(managed_role& role, protocol::time_point now);
  /// It runs. @param pid 0: it waits for a host  @returns whether it is up; the coordinator is when
  /// it has joined.
  bool has_started(managed_role& role, std::int32_t pid, protocol::time_point now);
  /// The coordinator has joined. @returns false if it was up
  bool has_joined(protocol::time_point now);
  /// The start in hand is over. @param state for people
  void end(managed_role& role, std::string state);

  // what it says
  /// @returns false of one that is not in hand; the coordinator's process speaks for the data
  /// dispatcher.
  bool hear(const protocol::heartbeat& beat, protocol::time_point now);
  /// The answer to it.
  protocol::keeper_places keepers_for(const protocol::heartbeat& beat) const {
    return copies_.answer(beat, roles_);
  }
  void avoid(const avoided_gpu& which) { avoided_.push_back(which); }

  // for those who look
  /// Whether this is the start of the coordinator that is in hand.
  bool accepts(const protocol::join& join) const;
  bool runs(const protocol::role_name& role, const protocol::fence& self) const {
    return roles_.runs(role, self);
  }
  /// As `dlrun status` shows them.
  std::vector<role_view> views() const { return copies_.shown(roles_.views(reports_), roles_); }
  worker_counts workers() const { return roles_.count(reports_); }
  const std::vector<avoided_gpu>& avoided_gpus() const { return avoided_; } ///< on all hosts

  managed_roles& roles() { return roles_; }
  const managed_roles& roles() const { return roles_; }
  life_signs& signs() { return signs_; }
  copy_board& copies() { return copies_; }
  const role_reports& reports() const { return reports_; }

private:
  managed_roles roles_;
  life_signs signs_;
  role_reports reports_;
  copy_board copies_;
  std::vector<avoided_gpu> avoided_;
};

} // namespace dlrun::agent
