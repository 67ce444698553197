/// What an end of a role that nobody ordered means, for all who hear of it.
#pragma once

#include "actors/agent/excused_deaths.hpp"
#include "actors/agent/life_signs.hpp"
#include "actors/agent/managed_roles.hpp"
#include "actors/agent/role_end.hpp"
#include "actors/common/supervisor_action.hpp"
#include "actors/protocol/event_messages.hpp"
#include "actors/protocol/start_messages.hpp"

#include <optional>
#include <string>

namespace dlrun::agent {

struct judged_end {
  protocol::job_event event;    ///< for the user
  protocol::role_exited exited; ///< for the coordinator
  supervision::child_exit exit; ///< for the supervisor
};

/// Pure: says in words why a role ended, whether that counts against a slot (R18), whether it uses
/// a restart of the budget, and whether the job can go on without it.
class end_judge {
public:
  /// @param state_is_durable the coordinator and the PS shards find their state again
  end_judge(std::uint32_t workers, bool state_is_durable)
      : excused_{workers}
      , state_is_durable_{state_is_durable} {}

  /// There may be so many workers from now on.
  void set_workers(std::uint32_t workers) { excused_.set_workers(workers); }

  /// A worker left, as it was asked to (R33): `workers` are wanted, or somebody else sent it a
  /// SIGTERM. Or a role ended for its next start to be elsewhere. Notes in `role` that another
  /// start follows of one that is still wanted.
  judged_end left(managed_role& role, const protocol::fence& self, const role_end& how, bool settled,
                  std::uint32_t workers) const;
  /// A role died. Notes in `role` why, and whether another start follows or would fail alike.
  /// @param is_moved a coordinator that was killed for it to start on another host
  judged_end died(managed_role& role, const protocol::fence& self, const role_end& how,
                  const life_signs& signs, bool is_moved, protocol::time_point now);

private:
  excused_deaths excused_;
  bool state_is_durable_;
};

/// Pure. The GPU of the start that ended gets no more workers.
protocol::job_event avoided_event(const avoided_gpu& which, const protocol::role_name& role,
                                  dlrun::incarnation start);

/// Pure. Why the job ends with this role, which has just died: nobody takes the place of one that
/// would end in the same way again, or whose state is gone with it. Nothing: another start follows.
std::optional<std::string> why_job_ends(const managed_role& role);

} // namespace dlrun::agent
