/// The roles that run on other hosts, as the agent of the job sees them.
#pragma once

#include "actors/agent/copy_board.hpp"
#include "actors/agent/drain_stage.hpp"
#include "actors/agent/host_admission.hpp"
#include "actors/agent/host_roster.hpp"
#include "actors/agent/hosted_actions.hpp"
#include "actors/agent/hosted_starts.hpp"
#include "actors/agent/placement.hpp"
#include "actors/protocol/host_messages.hpp"
#include "actors/protocol/planted_bug.hpp"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace dlrun::agent {

/// What the stores of a job that is complete hold (R19).
struct last_stores {
  std::uint32_t ps_shards = 1;
  version_id version{};   ///< its last one
  timeline_id timeline{}; ///< of that, or one before it
};
/// @param store null: none
inline bool holds(const protocol::held_store* store, const last_stores& last) {
  return store != nullptr && store->timeline >= last.timeline && store->end.value >= last.version.value;
}

struct hosted_roles_config {
  std::string root; ///< name of this host
  std::uint32_t root_cpus = 1;
  std::string root_beats_at{}; ///< number and UDP port of this host's beats
  /// The others: by name, with the cores they are to be used with; 0: those their agents tell of.
  std::map<std::string, std::uint32_t> hosts{};
  std::uint32_t threads_per_worker = 1;
  bool coordinator_moves = false; ///< its journal can be had from every host
  /// R37: `durability.replicas: auto` chose that there are copies. One for which no host is in use
  /// waits for one while others are drained; else it keeps the host that it has.
  bool copies_may_wait = false;
  /// R37: hosts that an earlier root of the run was to drain.
  std::map<std::string, drain_stage> drains{};
  std::vector<protocol::held_store> root_stores{}; ///< in the run folder
  /// Of a run that is resumed, the other hosts that it ever had, for people; "" of a new one.
  std::string hosts_before{};
  host_rules rules{};
  admission_rules joining{}; ///< its root is that above
  /// How long a PS shard waits for the host of its store when that is lost, before it begins
  /// elsewhere without a store, which costs the work since the last version that all can go back
  /// to.
  protocol::duration store_patience = std::chrono::seconds(10);
  std::uint64_t root_process = 0; ///< random number of the root's process
  /// This root goes on for one that is gone, with the roles that it finds (R35). False: an agent
  /// that another root started is let in no more.
  bool takes_over = false;
  /// Then: random numbers of the roots that ran the job as it is now. An agent that another one
  /// started is let in no more either: it may have been away while the job was changed.
  std::set<std::uint64_t> roots_of_same_job{};
  std::vector<returning_host> returning{}; ///< then: those that had joined it
  /// R38: the job is complete, and this root comes for what its stores hold. Nothing starts; what
  /// an earlier root left running is killed as it is told of.
  std::optional<last_stores> gathers{};
  /// Between two sendings of an order that has not been answered.
  protocol::duration repeat_after = std::chrono::milliseconds(500);
  protocol::planted_bug bug = protocol::planted_bug::none; ///< for the simulator
};

/// Pure: places each start, orders it until the host has answered, and turns what hosts say, or
/// their loss, into what a launcher says. Orders are repeated from state; an end is told once.
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
  /// Of a start in hand: a keeper says what it holds.
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
  void hold_hosts() { holds_hosts_ = true; }
  /// The job is over: hosts are dismissed, and none is started any more.
  hosted_actions dismiss(const std::string& reason);

  std::vector<seen_work> look() const;
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
  void settle_leaving(protocol::time_point now, hosted_actions& out);

  hosted_roles_config config_;
  host_roster roster_;
  placement placement_;
  host_admission admission_;
  hosted_starts starts_;
  std::map<start_key, protocol::running_start> found_; ///< of those, what another root started
  bool has_begun_ = false;                             ///< nothing more is taken over
  bool holds_hosts_ = false;
  std::map<std::string, std::vector<protocol::worker_sight>> sights_;
  std::string dismissed_{};                          ///< why all hosts are; "" as long as they are not
  std::optional<protocol::time_point> dismissal_at_; ///< when that was repeated, or noticed
};

} // namespace dlrun::agent
