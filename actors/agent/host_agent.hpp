/// The host agent actor: runs roles on a host for the agent of the job, which is on another one.
#pragma once

#include "actors/agent/beats/beat_exchange.hpp"
#include "actors/agent/host_agent_core.hpp"
#include "actors/agent/memory_watch.hpp"
#include "actors/agent/role_launcher.hpp"
#include "actors/common/clock.hpp"
#include "actors/common/root_place.hpp"
#include "actors/common/task_thread.hpp"
#include "actors/protocol/handles.hpp"
#include "actors/protocol/host_takes.hpp"
#include "base/pulse.hpp"

#include <caf/all.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <spdlog/logger.h>

namespace dlrun::agent {

struct host_agent_arguments {
  host_agent_config core;
  std::uint64_t started_by = 0; ///< random number of the root's process
  std::uint32_t cpus = 1;       ///< that roles may use here
  std::uint32_t gpus = 0;       ///< that workers use here
  bool preemptible = false;     ///< this host may go at short notice
  protocol::host_takes takes = protocol::host_takes::any;
  std::string machine{}; ///< on which this host is; "": one of its own
  /// What is here of stores that no PS shard of these has open. May block: it is called on a thread
  /// of the actor's. Null: nothing is.
  std::function<std::vector<protocol::held_store>(const std::vector<protocol::running_start>& running)>
      stores{};
  std::filesystem::path folder{}; ///< where they are
  std::string data_at{};          ///< tensor server that gives the job's data to others
  protocol::data_intake intake{}; ///< what others gave of it
  /// Finds the agent of the job. Never blocks; calls its argument once, on any thread.
  std::function<void(std::function<void(result<protocol::agent_actor>)>)> dial;
  /// Where it is dialled; null: where it always was.
  std::shared_ptr<common::root_place> place{};
  /// Ends the connection to the agent that is there.
  std::function<void()> leave_root = [] {};
  /// Must outlive the actor.
  std::shared_ptr<role_launcher> launcher;
  std::shared_ptr<beat_service> beats; ///< with the root
  beat_peer root{};
  std::shared_ptr<spdlog::logger> log;
  std::function<bool()> has_notice = [] { return false; }; ///< is it to leave? Once for each notice
  /// It ends, for this. Before it quits, on its thread.
  std::function<void(const leave&)> leaves = [](const leave&) {};
  std::function<protocol::time_point()> now = common::now; ///< the time by which it decides
  /// Of this process. It is ready from the first link on: a host that waits for another root has
  /// its stores, and is in its place.
  std::shared_ptr<base::pulse> pulse = std::make_shared<base::pulse>();
};

/// The shell of a host agent: runs roles on its host by order of the agent of the job. It quits
/// when it has to leave, with an error if that is a failure; the owner of the launcher then ends
/// the roles.
class host_agent_state {
public:
  struct holder {
    std::unique_ptr<host_agent_state> role;
    static inline const char* name = "host-agent";
  };
  using pointer = protocol::host_agent_actor::stateful_pointer<holder>;
  using behavior = protocol::host_agent_actor::behavior_type;

  /// For `system.spawn(host_agent_state::start, arguments)`. Begins at once.
  static behavior start(pointer self, host_agent_arguments arguments);

private:
  host_agent_state(pointer self, host_agent_arguments arguments);
  behavior make_behavior();

  void on_tick();
  void dial();
  void on_found(const result<protocol::agent_actor>& found, std::uint64_t dial);
  void join();
  void tell_joined(std::vector<protocol::running_start> running, std::vector<protocol::held_store> stores);
  caf::result<protocol::store_listing> on_listing_wanted(const protocol::store_listing_wanted& wanted);
  caf::result<protocol::store_part> on_part_wanted(const protocol::store_part_wanted& wanted);
  caf::result<protocol::log_listing> on_log_listing_wanted();
  caf::result<protocol::log_part> on_log_part_wanted(const protocol::log_part_wanted& wanted);
  caf::result<protocol::store_listing> on_snapshots_wanted(const protocol::snapshots_wanted& wanted);
  caf::result<protocol::store_part> on_snapshot_part_wanted(const protocol::snapshot_part_wanted& wanted);
  template <class Answer, class Read>
  caf::result<Answer> read_files(Read read);
  result<void> begin_beats();
  void on_sighting(const sighting& seen);
  void look_where(const std::string& at);
  void on_join_reply(const protocol::join_reply& reply, bool said_leaving);
  void lose_link(const std::string& why);

  void carry_out(const host_agent_actions& actions);
  void carry_out(const launch_role& action);
  void carry_out(const end_role& action);
  void carry_out(const tell_agent& action);
  void carry_out(const leave& action);
  launch_events make_launch_events();

  pointer self_;
  host_agent_arguments arguments_;
  base::turning turning_{arguments_.pulse->agent};
  host_agent_core core_;
  protocol::agent_actor agent_{}; ///< null while it is not found
  bool dialling_ = false;         ///< or joining
  std::uint64_t dials_ = 0;       ///< an earlier one counts no more
  std::size_t reads_ = 0;         ///< that have not been answered
  memory_watch memory_;           ///< of this host
  common::task_thread reader_{"dlrun-files"};
};

} // namespace dlrun::agent
