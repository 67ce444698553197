/// Decides what runs on this host: starts, restarts and stops the roles' processes (or actors), and
/// ends the job in order.
#pragma once

#include "actors/agent/copy_board.hpp"
#include "actors/agent/end_judge.hpp"
#include "actors/agent/exit_notices.hpp"
#include "actors/agent/found_roles.hpp"
#include "actors/agent/grant_wait.hpp"
#include "actors/agent/job_end.hpp"
#include "actors/agent/journal_wait.hpp"
#include "actors/agent/life_signs.hpp"
#include "actors/agent/managed_roles.hpp"
#include "actors/agent/role_book.hpp"
#include "actors/agent/role_end.hpp"
#include "actors/agent/scale_orders.hpp"
#include "actors/common/supervisor.hpp"
#include "actors/protocol/end_messages.hpp"
#include "actors/protocol/event_messages.hpp"
#include "actors/protocol/heartbeat_messages.hpp"
#include "actors/protocol/host_messages.hpp"
#include "actors/protocol/planted_bug.hpp"
#include "actors/protocol/start_messages.hpp"
#include "actors/protocol/time.hpp"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace dlrun::agent {

struct agent_core_config {
  std::uint32_t workers = 1;
  std::uint32_t ps_shards = 1;
  std::uint32_t copies = 0; ///< of the store of each PS shard, each with a keeper
  scale_limits scale{};
  std::chrono::milliseconds leave_grace{30000}; ///< between a request to leave and a kill
  std::uint64_t agent = 0;                      ///< random number of this process
  /// Of the first start of the coordinator. One that leaves no fence for the next is started again
  /// one incarnation further.
  protocol::fence coordinator;
  /// The coordinator and the PS shards find their state on disk when they are started again. False:
  /// it was in their memory only, so their end is the job's.
  bool state_is_durable = false;
  std::size_t restart_intensity = 10; ///< more restarts than this within the period end the job
  std::chrono::milliseconds restart_period{60000};
  std::chrono::milliseconds shutdown_patience{2000}; ///< between a request to end and a kill
  life_rules life{};
  /// How long a coordinator that is down waits for a fence that its start before may have granted.
  protocol::duration grant_patience = std::chrono::seconds(2);
  /// How long one that waits for its journal does so on one host. Nothing: there is no other.
  std::optional<protocol::duration> journal_patience{};
  protocol::planted_bug bug = protocol::planted_bug::none; ///< for the simulator
  /// How long the coordinator gets to write the report when the job has to end.
  protocol::duration report_patience = std::chrono::seconds(3);
};

// ---- what the shell must do

/// Start the role; answer with on_started() or on_start_failed(), and on_exited() when it is over.
struct start_role {
  protocol::role_name role;
  protocol::fence self;
  copy_facts copies{};
};
struct stop_role {
  protocol::role_name role;
  protocol::fence self;
  protocol::stop_how how = protocol::stop_how::end;
};
/// To the coordinator.
using to_coordinator =
    std::variant<protocol::role_started, protocol::role_exited, protocol::stop_job, protocol::scale_job>;
/// A line for the user and for events.jsonl.
struct announce {
  protocol::job_event event;
};
/// Nothing runs any more: the agent's work is done. Given once.
struct all_stopped {
  protocol::job_ended ended;
};
using agent_action = std::variant<start_role, stop_role, to_coordinator, announce, all_stopped>;
using agent_actions = std::vector<agent_action>;

/// Pure: decides which roles are started, restarted and stopped. It is a supervision tree of one
/// level (coordinator, PS shards, workers, keepers, in this order) over fences that the coordinator
/// grants. While the coordinator is away it uses the fences that it holds.
class agent_core {
public:
  explicit agent_core(agent_core_config config);

  /// @param running what runs on other hosts by order of an earlier root (R35)
  agent_actions start(protocol::time_point now, const std::vector<protocol::running_start>& running = {});
  /// The coordinator is up: the next roles may start. One that was started again, or lost its
  /// connection, is told what runs, and what ended while there was none.
  /// @param process its own: endpoint::process
  agent_actions on_coordinator_joined(std::uint64_t process, protocol::time_point now);
  agent_actions on_grant(const protocol::grant& grant, protocol::time_point now);
  /// It runs all the same if an earlier root gave its host up: it is killed, and started again.
  agent_actions on_start_over(const protocol::start_over& which);
  /// The operator wants so many workers. @returns the number of the request: it is done once
  /// on_workers_wanted() has heard of it, or bad_usage.
  result<std::uint64_t> on_scale_request(std::uint32_t workers, agent_actions& out);
  agent_actions on_workers_wanted(const protocol::workers_wanted& word, protocol::time_point now);
  agent_actions on_started(const protocol::role_name& role, const protocol::fence& self, std::int32_t pid,
                           protocol::time_point now);
  agent_actions on_start_failed(const protocol::role_name& role, const protocol::fence& self,
                                const error& why, protocol::time_point now);
  agent_actions on_exited(const protocol::role_name& role, const protocol::fence& self, const role_end& how,
                          protocol::time_point now);
  agent_actions on_heartbeat(const protocol::heartbeat& beat, protocol::time_point now);
  /// The start in hand ends, for the next one to be elsewhere: no failure, and no restart of the
  /// budget. Asked again, it may be asked more strongly. A PS shard that is asked to leave is told
  /// so with each answer from now on, while its copy is whole. @returns whether it will end
  bool vacate(const protocol::role_name& which, protocol::stop_how how, const std::string& why,
              agent_actions& out);
  /// A PS shard that was asked to leave is told so no more.
  void let_stay(const protocol::role_name& shard) { book_.roles().let_stay(shard); }
  /// To be told at every tick.
  agent_actions on_work_seen(const seen_work& seen, protocol::time_point now);
  agent_actions on_job_ended(const protocol::job_ended& ended, protocol::time_point now);
  /// Ctrl-C, `dlrun stop`, or a failure of the host.
  agent_actions on_stop(const protocol::stop_job& stop, protocol::time_point now);
  agent_actions on_tick(protocol::time_point now);

  const role_book& book() const { return book_; }
  bool ending() const { return end_.is_begun(); }

private:
  supervision::child_exit tell_end(managed_role& role, const protocol::fence& self, const role_end& how,
                                   bool left, protocol::time_point now, agent_actions& out);
  void follow(const supervision::actions& actions, protocol::time_point now, agent_actions& out);
  void outdo(const protocol::known_coordinator& followed, agent_actions& out);
  void stop(const supervision::stop_child& order, protocol::time_point now, agent_actions& out);
  void begin_end(const protocol::job_ended& how, protocol::time_point now, agent_actions& out);
  void shut_down(protocol::time_point now, agent_actions& out);

  agent_core_config config_;
  supervision::supervisor supervisor_;
  role_book book_;
  exit_notices exits_;
  end_judge judge_;
  scale_orders orders_;
  found_roles found_; ///< workers that the specification does not know of, until the coordinator does
  job_end end_;
  protocol::known_coordinator joined_; ///< the last one
  bool may_coordinator_stop_ = true;   ///< false: its turn has come, and it writes the report
  grant_wait grant_wait_;
  journal_wait journal_wait_;
};

} // namespace dlrun::agent
