/// The coordinator actor: routes messages into coordinator_core and carries its decisions out.
///
///   join, role_started, role_exited ──> coordinator_core ──> member_links ──> directory, poisoned_slot, ...
///   training_finished, evaluated ────> its job_ending ─┬──> coordinator_disk: fences, the end
///   stop_job, divergence ─────────────┘                └──> report_writer ──> report.json
///   down ──> dispatcher_keeper              tick ──> coordinator_reports ──> heartbeat, job_event
#pragma once

#include "actors/common/ask.hpp"
#include "actors/coordinator/coordinator_context.hpp"
#include "actors/coordinator/coordinator_core.hpp"
#include "actors/coordinator/coordinator_disk.hpp"
#include "actors/coordinator/coordinator_reports.hpp"
#include "actors/coordinator/dispatcher_keeper.hpp"
#include "actors/coordinator/member_links.hpp"
#include "actors/coordinator/report_sender.hpp"
#include "actors/coordinator/report_writer.hpp"
#include "actors/coordinator/store_book.hpp"
#include "actors/link/io_thread_actor.hpp"

#include <functional>
#include <memory>
#include <optional>

namespace dlrun::coordinator {

/// Starts a data dispatcher in this process. Roles do not include one another, so runtime/role_host
/// passes this in.
using dispatcher_starter = std::function<protocol::local_data_dispatcher_actor(
    dlrun::incarnation, const protocol::coordinator_actor&, const std::shared_ptr<common::job_journal>&)>;

/// The shell of the coordinator: enters the job, hands each message to the part that it is for, and
/// each action of the core to the part that carries it out. Runs on the thread of the sockets.
class coordinator_state {
public:
  struct holder {
    std::unique_ptr<coordinator_state> role;
    static inline const char* name = "coordinator";
  };
  using pointer = link::io_thread_actor<holder, protocol::coordinator_actor>*;
  using behavior = protocol::coordinator_actor::behavior_type;

  /// For `system.spawn(coordinator_state::start, context, starter)`. The actor quits with an error
  /// when its agent does not answer, the dispatcher cannot be kept running, or the journal cannot
  /// be used.
  static behavior start(pointer self, coordinator_context context, dispatcher_starter starter);

private:
  using join_answer = caf::result<protocol::join_reply, protocol::data_dispatcher_actor>;

  coordinator_state(pointer self, coordinator_context context, dispatcher_starter starter);
  behavior make_behavior();

  // its start, from the journal to the first fences for the agent
  void acquire();
  void enter(const journaled_job& journaled);
  void on_published(const protocol::endpoint& at);
  void join_agent();
  protocol::local_data_dispatcher_actor start_dispatcher(const std::string& why);

  join_answer on_join(const protocol::join& join, const member_links::member& who);
  bool is_store_short(const protocol::join& join);
  void on_progress(const protocol::training_progress& progress);
  void on_role_exited(const protocol::role_exited& exited);
  void on_evaluated(const protocol::evaluated& result);
  void on_training_finished(const protocol::training_finished& what);
  void on_redispatched(const protocol::slots_redispatched& what);
  void on_contributed(const protocol::worker_contributed& what);
  void on_shard_resumed(const protocol::ps_shard_resumed& what);
  void on_timeline_started(const protocol::timeline_started& what);
  void on_divergence(const protocol::divergence& what);
  void on_dispatcher_down(const caf::down_msg& down);
  void on_tick();
  void write_lazily();

  void carry_out(const coordinator_actions& actions);
  void carry_out(const coordinator_action& action);
  void say(const protocol::workers_wanted& word);
  void journal_then(common::job_journal::writes changes, std::function<coordinator_actions()> next);
  void ask(const request_digests& order);
  void finish(const finish_job& order);
  void hand_over_report(const report_writer::written& written);
  void quit(const std::string& why);

  pointer self_;
  coordinator_context context_;
  common::poster<protocol::coordinator_actor> post_;
  std::optional<coordinator_core> core_; ///< from when the journal has been read
  dispatcher_starter start_dispatcher_;
  protocol::endpoint endpoint_;
  bool joining_ = false;    ///< the agent has not answered yet
  bool has_joined_ = false; ///< once

  member_links links_;
  store_book stores_;
  report_writer report_;
  report_sender report_sender_;
  std::string report_text_{}; ///< that was handed over
  coordinator_reports reports_;
  dispatcher_keeper dispatcher_;
  coordinator_disk disk_; ///< last: its thread ends before what its tasks use goes
};

} // namespace dlrun::coordinator
