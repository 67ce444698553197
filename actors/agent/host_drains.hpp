/// Hosts that are to be emptied, and what of each goes next (rule R37).
#pragma once

#include "actors/agent/crowding.hpp"
#include "actors/agent/drain_stage.hpp"
#include "actors/agent/host_roster.hpp"
#include "actors/agent/placement.hpp"
#include "actors/agent/role_reports.hpp"
#include "actors/protocol/event_messages.hpp"
#include "actors/protocol/host_messages.hpp"
#include "actors/protocol/planted_bug.hpp"

#include <dlrun/error.hpp>
#include <map>
#include <string>
#include <vector>

namespace dlrun::agent {

/// What is where. References to what the agent and its launcher know; for one call.
struct drain_sight {
  const std::vector<role_view>& roles;
  const placement& places;
  const host_roster& hosts;
  bool is_ending = false; ///< the job: nothing moves any more
};

/// The start in hand of a role is to end, for the next one to be elsewhere.
struct departure {
  protocol::role_name role;
  protocol::stop_how how = protocol::stop_how::end;
  std::string why; ///< for people

  bool operator==(const departure&) const = default;
};

struct drain_steps {
  std::vector<departure> departures;
  /// PS shards that were asked to leave, and are not to go any more; until they have heard it.
  std::vector<protocol::role_name> stays;
  std::map<std::string, drain_stage> changes; ///< hosts that are in another stage now
  std::vector<protocol::job_event> events;
};

/// One host, for people.
struct drain_view {
  drain_stage stage = drain_stage::draining;
  std::string waits_for{};   ///< what is there still, or not elsewhere yet, and why; "" when drained
  bool needs_a_host = false; ///< it gets no further before another host is there
  /// As long as it is drained, or until another host is there: copies wait for a host.
  bool without_copies = false;
};

/// Pure: decides from what runs where, each time anew, so nothing that is lost or comes late
/// matters. Workers leave (R33); where all are on such hosts one stays until another computes
/// elsewhere. A PS shard ends when its copy on a host that is open is whole, for it starts there
/// with all that was committed (R25); it stays when that is so no more, or the drain is undone. A
/// keeper whose PS shard is elsewhere is given up for another one, of several one at a time: its
/// store stays, and counts in the order of R30 if that of the PS shard is lost before the next copy
/// is whole. Where copies may wait, one for which no host is in use is given up too, after those
/// that have one. A host is drained when nothing runs there and all copies, but for those that wait
/// for a host, are whole elsewhere. When a PS shard has to start there again, since no other host
/// has a store of it, it is being drained again. A root that comes back begins with the hosts and
/// stages of the one before. While nothing is being drained, PS shards are spread over the hosts,
/// in the same way (R44).
class host_drains {
public:
  /// Before a role that was asked to end is killed; a worker has all the time that it needs.
  static constexpr auto end_patience = std::chrono::seconds(2);
  /// The same of a PS shard that gets no further: it may have to make a snapshot and bring it to
  /// its copy, which takes as long as it takes.
  static constexpr auto move_patience = std::chrono::seconds(60);

  /// @param root its host, which stays
  /// @param kept by an earlier root; without the host of this one
  /// @param bug for its property test
  explicit host_drains(std::string root, const std::map<std::string, drain_stage>& kept = {},
                       protocol::planted_bug bug = protocol::planted_bug::none);

  /// The host is to be emptied from now on. @returns what is told of it, or bad_usage with what is
  /// in the way and the way out.
  result<protocol::job_event> begin(const std::string& host, const drain_sight& seen);
  /// The host may be used again. @returns what is told of it, or bad_usage for one that is not
  /// being drained.
  result<protocol::job_event> undo(const std::string& host, const drain_sight& seen);
  /// Again and again, unless it is idle.
  drain_steps next(const drain_sight& seen, protocol::time_point now);
  /// The role could not be asked to end as the last steps have it: it is asked anew.
  void not_asked(const protocol::role_name& role) { asked_.erase(role); }

  /// No host is drained, and no PS shard is to hear that it stays.
  bool is_idle() const;
  const std::map<std::string, drain_view>& all() const { return hosts_; }

private:
  struct asked_role {
    dlrun::incarnation self;
    protocol::time_point since; ///< a PS shard: it has got no further since then
    std::uint64_t progress = 0; ///< of a PS shard, then
    bool is_to_go = true;       ///< as the last look has it
    bool stays = false;         ///< a PS shard: it is told so
  };
  void look_at(const std::string& host, drain_view& view, const drain_sight& seen, protocol::time_point now,
               drain_steps& out);
  void ask(const role_view& one, departure what, protocol::time_point now, drain_steps& out);
  void let_stay(const drain_sight& seen, drain_steps& out);
  bool is_going(const role_view& one) const;
  const role_view* not_whole(const drain_sight& seen, const role_view* but) const;
  bool is_stuck(const role_view& one, protocol::time_point now) const;
  void look_at_crowd(const drain_sight& seen, protocol::time_point now, drain_steps& out);

  std::string root_;
  protocol::planted_bug bug_;
  std::map<std::string, drain_view> hosts_;
  shard_spread spread_;
  std::vector<std::string> untold_;                 ///< of those, what was kept
  std::map<protocol::role_name, asked_role> asked_; ///< to end: the newest start of each role
};

} // namespace dlrun::agent
