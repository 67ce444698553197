/// The roles that run on other hosts, as the agent of the job sees them.
#pragma once

#include "actors/agent/copy_board.hpp"
#include "actors/agent/drain_stage.hpp"
#include "actors/agent/found_starts.hpp"
#include "actors/agent/host_admission.hpp"
#include "actors/agent/host_departures.hpp"
#include "actors/agent/host_roster.hpp"
#include "actors/agent/host_trials.hpp"
#include "actors/agent/hosted_actions.hpp"
#include "actors/agent/hosted_roles_config.hpp"
#include "actors/agent/hosted_starts.hpp"
#include "actors/agent/placement.hpp"
#include "actors/protocol/heartbeat_messages.hpp"
#include "actors/protocol/host_messages.hpp"
#include "base/own_machine.hpp"

#include <map>
#include <string>
#include <vector>

namespace dlrun::agent {

/// The newest of each host.
using host_reports = std::map<std::string, protocol::work_report>;
/// What workers on all hosts were seen to compute.
std::vector<seen_work> work_in(const host_reports& reports);
/// With a limit of 0: that host has not told.
base::memory_use memory_of(const host_reports& reports, const std::string& host);

/// Pure: places each start, orders it until the host has answered, and turns what hosts say, or
/// their loss, into what a launcher says. Orders are repeated from state; an end is told once.
///
///   start ───────────────────────────────> placement ──> hosted_starts ──> to_host, start_here
///   on_joined ──> host_roster: it is there ──> found_starts (R35) ──┘
///   beats, links, commands ──> host_roster: it is lost ──> what it ran is over ──> tell_launch
///   on_joined without cores, dismiss ──> host_departures ──> let_go, dismissal
class hosted_roles {
public:
  explicit hosted_roles(hosted_roles_config config);

  hosted_actions begin(protocol::time_point now);
  /// R35. The starts that run on hosts which are there: of each role the newest. What hosts tell of
  /// from now on, and what was not chosen, is to end. Called once, before the first start().
  std::vector<protocol::running_start> take_over(protocol::time_point now, hosted_actions& out);
  /// Places it, and orders it unless its place is here.
  /// A whole copy of a PS shard is as good as its store (R25).
  hosted_actions start(const protocol::role_name& role, const protocol::fence& self, protocol::time_point now,
                       const copy_facts& copies = {});
  /// Where the coordinator is now: whom roles are to join that are ordered from here on.
  void coordinator_is(dlrun::incarnation incarnation, const protocol::endpoint& at) {
    starts_.coordinator_is(incarnation, at);
  }
  /// Those in hand: the others were placed on the root's host, or are over.
  const hosted_starts& starts() const { return starts_; }
  hosted_actions stop(const protocol::role_name& role, const protocol::fence& self, protocol::stop_how how,
                      protocol::time_point now);

  /// Lets it in: its agent is on its way from now on. @returns bad_usage with the reason.
  result<admission> admit(const arriving_host& who, protocol::time_point now, hosted_actions& out);
  hosted_actions on_joined(const protocol::host_joined& joined, protocol::time_point now,
                           std::string& refused);
  hosted_actions on_report(const protocol::start_report& report, protocol::time_point now);
  /// A sign of life of a start in hand; a keeper says what it holds.
  void on_heartbeat(const protocol::heartbeat& beat);
  void on_work(const protocol::work_report& work, protocol::time_point now);
  hosted_actions on_sighting(const std::string& host, std::uint64_t boot, const sighting& seen,
                             protocol::time_point now);
  /// R37: what starts is to be elsewhere; once it is drained nobody starts the host's agent again.
  hosted_actions set_drain(const std::string& host, drain_stage stage, protocol::time_point now);
  hosted_actions on_link_lost(const std::string& host, std::uint64_t boot, protocol::time_point now);
  hosted_actions on_command_ended(const std::string& host, std::uint64_t attempt, const std::string& why,
                                  protocol::time_point now);
  hosted_actions tick(protocol::time_point now);
  /// R38: the job is complete, and its stores are not brought yet. No host that is to leave is let
  /// go, until it is dismissed with the others.
  void hold_hosts() { departures_.hold(); }
  /// The job is over: hosts are dismissed, and none is started any more.
  hosted_actions dismiss(const std::string& reason);

  /// What the agents of hosts that are there have told last.
  const host_reports& reports() const { return reports_; }
  const host_admission& joining() const { return admission_; }
  const std::string& root() const { return config_.root; }
  const host_roster& roster() const { return roster_; }
  const placement& places() const { return placement_; }

private:
  const std::string* host_to_wait_for(const protocol::role_name& role) const;
  void settle(const protocol::role_name& role, hosted_start one, protocol::time_point now,
              hosted_actions& out);
  void follow(roster_events events, protocol::time_point now, hosted_actions& out);
  void lose(const host_lost& lost, protocol::time_point now, hosted_actions& out);
  void settle_waiting(protocol::time_point now, hosted_actions& out);
  void see_off(protocol::time_point now, hosted_actions& out);

  hosted_roles_config config_;
  host_roster roster_;
  placement placement_;
  host_admission admission_;
  hosted_starts starts_;
  found_starts found_;
  host_departures departures_;
  host_trials trials_;
  host_reports reports_;
};

} // namespace dlrun::agent
