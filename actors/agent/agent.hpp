/// The agent actor: routes messages into agent_core and carries its decisions out.
#pragma once

#include "actors/agent/agent_core.hpp"
#include "actors/agent/drain_desk.hpp"
#include "actors/agent/event_file.hpp"
#include "actors/agent/memory_watch.hpp"
#include "actors/agent/report_intake.hpp"
#include "actors/agent/role_launcher.hpp"
#include "actors/agent/routed_launcher.hpp"
#include "actors/agent/run_board.hpp"
#include "actors/agent/stall_board.hpp"
#include "actors/agent/wind_up.hpp"
#include "actors/common/clock.hpp"
#include "actors/common/job_context.hpp"
#include "actors/link/greeting.hpp"
#include "base/pulse.hpp"

#include <functional>
#include <map>
#include <memory>

namespace dlrun::agent {

/// The identity of the root on its control connections: there is one root in a run.
inline constexpr link::peer_id agent_peer{{protocol::role_kind::agent, 0}, {1}};

struct agent_arguments {
  std::shared_ptr<const common::job_context> job;
  protocol::fence coordinator; ///< fence of the coordinator's start
  /// Must outlive the agent's work (run_board::finish()).
  std::shared_ptr<role_launcher> launcher;
  std::shared_ptr<run_board> board;
  std::shared_ptr<spdlog::logger> log;
  std::function<protocol::time_point()> now = common::now; ///< the time by which it decides
  /// The launcher, where the job may use other hosts; else null.
  std::shared_ptr<routed_launcher> hosts{};
  std::shared_ptr<drain_desk> drains{}; ///< of these hosts
  /// R38: the job is complete, and its stores are to be brought from these hosts. Nothing starts.
  std::optional<last_stores> gathers{};
  /// As wind_up_parts has it; null where the job has this host alone.
  std::function<std::optional<std::string>()> lacking{};
  std::function<std::string(const std::stop_token&)> deliver{};         ///< likewise
  std::shared_ptr<base::pulse> pulse = std::make_shared<base::pulse>(); ///< of this process
};

/// The shell of the agent: hands each message to the part that it is for, and each action of the
/// core to the launcher, the coordinator or the run board.
class agent_state {
public:
  struct holder {
    std::unique_ptr<agent_state> role;
    static inline const char* name = "agent";
  };
  using pointer = protocol::agent_actor::stateful_pointer<holder>;
  using behavior = protocol::agent_actor::behavior_type;

  /// For `system.spawn(agent_state::start, arguments)`. The job starts at the first tick, which the
  /// caller sends once the launcher knows where the agent listens.
  static behavior start(pointer self, agent_arguments arguments);

private:
  agent_state(pointer self, agent_arguments arguments);
  behavior make_behavior();

  caf::result<protocol::join_reply> on_join(const protocol::join& join,
                                            const protocol::coordinator_actor& coordinator);
  void on_grant(const protocol::grant& grant);
  caf::result<protocol::scale_reply> on_scale_request(const protocol::scale_request& request);
  caf::result<protocol::journal_part> on_journal_part_wanted(const protocol::journal_part_wanted& wanted);
  void on_workers_wanted(const protocol::workers_wanted& word);
  protocol::coordinator_location on_heartbeat(const protocol::heartbeat& beat);
  void clear_ways();
  void begin_hosts();
  void on_down(const caf::actor_addr& who);
  caf::result<protocol::role_credentials> on_credentials_wanted(const protocol::credentials_wanted& wanted);
  protocol::join_reply on_host_joined(const protocol::host_joined& joined,
                                      const protocol::host_agent_actor& who);
  protocol::report_taken on_report_part(const protocol::report_part& part);
  void on_stall(const protocol::stall& what);
  void on_tick();
  void begin();
  void gather();
  void add_event(protocol::job_event event);

  void carry_out(const agent_actions& actions);
  void carry_out(const start_role& action);
  void carry_out(const stop_role& action);
  void carry_out(const to_coordinator& action);
  void carry_out(const announce& action);
  void carry_out(const all_stopped& action);
  void finish(const protocol::job_ended& ended, bool hosts_may_go);
  launch_events make_launch_events();
  void show();

  pointer self_;
  agent_arguments arguments_;
  base::turning turning_{arguments_.pulse->agent};
  agent_core core_;
  stall_board stalls_;
  bool started_ = false;
  std::optional<protocol::join> coordinator_at_;
  protocol::coordinator_actor coordinator_; ///< null while no connection leads to it
  report_intake report_;
  wind_up wind_up_;
  /// Requests whose number is not journaled yet, by the agent's number of them.
  std::map<std::uint64_t, caf::typed_response_promise<protocol::scale_reply>> scaling_;
  event_file events_; ///< events.jsonl of the run folder
  std::string status_ = "running";
  memory_watch memory_; ///< of the root's host
};

} // namespace dlrun::agent
