/// The coordinator actor: routes messages into coordinator_core and carries its decisions out. It
/// also keeps the data dispatcher, which shares its process, running.
#pragma once

#include "actors/common/io_thread_actor.hpp"
#include "actors/common/job_context.hpp"
#include "actors/common/job_journal.hpp"
#include "actors/common/sender.hpp"
#include "actors/common/supervisor.hpp"
#include "actors/coordinator/coordinator_core.hpp"
#include "actors/coordinator/run_record.hpp"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <variant>

namespace dlrun::coordinator {

/// Starts a data dispatcher in this process. Roles do not include one another: the host of the
/// roles passes this in.
using dispatcher_starter = std::function<protocol::local_data_dispatcher_actor(
    dlrun::incarnation, const protocol::coordinator_actor&, const std::shared_ptr<common::job_journal>&)>;

class coordinator_state {
public:
  struct holder {
    std::unique_ptr<coordinator_state> role;
    static inline const char* name = "coordinator";
  };
  using pointer = common::io_thread_actor<holder, protocol::coordinator_actor>*;
  using behavior = protocol::coordinator_actor::behavior_type;

  /// For `system.spawn(coordinator_state::start, context, starter)`. The actor quits with an error
  /// when its agent does not answer, the dispatcher cannot be kept running, or the journal cannot
  /// be used.
  static behavior start(pointer self, common::role_context context, dispatcher_starter starter);
  ~coordinator_state() { *waits_for_disk_ = false; }

private:
  using member = std::variant<std::monostate, protocol::worker_actor, protocol::ps_shard_actor>;
  using join_answer = caf::result<protocol::join_reply, protocol::data_dispatcher_actor>;

  coordinator_state(pointer self, common::role_context context, dispatcher_starter starter);
  behavior make_behavior();
  void open_journal();
  void on_journal_opened(std::shared_ptr<common::job_journal> journal,
                         const result<journaled_job>& journaled);
  common::full_disk_watcher disk_watcher();
  void on_disk_full(const error& why);
  void on_disk_ok();
  void tell_disk(std::string event, const std::string& text);
  void enter(journaled_job journaled);

  join_answer on_join(const protocol::join& join, member who);
  void on_role_exited(const protocol::role_exited& exited);
  void on_stop(const protocol::stop_job& stop);
  void on_redispatched(const protocol::slots_redispatched& what);
  void on_contributed(const protocol::worker_contributed& what);
  void on_shard_resumed(const protocol::ps_shard_resumed& what);
  void on_timeline_started(const protocol::timeline_started& what);
  void on_evaluated(const protocol::evaluated& result);
  void tell_evaluated(const protocol::evaluated& result);
  void on_training_finished(const protocol::training_finished& what);
  std::vector<protocol::evaluated> evaluations() const;
  void on_divergence(const protocol::divergence& what);
  void on_dispatcher_down(const caf::down_msg& down);
  void on_tick();

  void on_published(const protocol::endpoint& at);
  void join_agent();
  void carry_out(const supervision::actions& actions);
  void start_dispatcher(const supervision::start_child& order);

  void carry_out(const coordinator_actions& actions);
  void carry_out(const send_grant& action);
  void carry_out(const send_directory& action);
  void carry_out(const answer_join& action);
  void carry_out(const protocol::worker_available& action);
  void carry_out(const protocol::worker_gone& action);
  void carry_out(const protocol::ps_shard_available& action);
  void carry_out(const protocol::ps_shard_gone& action);
  void carry_out(const slot_suspected& action);
  void carry_out(const protocol::poisoned_slot& action);
  void carry_out(const journal_fences& action);
  void carry_out(const journal_end& action);
  void carry_out(const request_digests& action);
  void carry_out(const protocol::close_training& action);
  void carry_out(const finish_job& action);
  void carry_out(const announce_end& action);
  void journal_then(common::job_journal::writes changes, std::function<coordinator_actions()> next);
  void keep_record();
  void report_alive();
  void tell_user(std::string event, const protocol::role_name& role, dlrun::incarnation incarnation,
                 std::string text, protocol::event_numbers numbers = {});
  void quit(const std::string& why);

  pointer self_;
  common::role_context context_;
  std::shared_ptr<common::job_journal> journal_; ///< null where nothing is kept on disk
  std::optional<coordinator_core> core_;         ///< from when the journal has been read
  run_record record_;
  dispatcher_starter start_dispatcher_;
  supervision::supervisor dispatchers_; ///< of the one child "data_dispatcher"
  protocol::local_data_dispatcher_actor dispatcher_;
  supervision::generation dispatcher_generation_ = 0;
  protocol::endpoint endpoint_;
  std::map<protocol::role_name, member> members_;
  std::optional<protocol::join_reply> join_reply_; ///< the core's answer to the join in hand
  protocol::training_progress progress_;           ///< newest
  common::latest_sender<protocol::heartbeat> heartbeat_sender_;
  common::latest_sender<protocol::heartbeat> dispatcher_heartbeat_sender_; ///< speaks for the dispatcher
  std::set<protocol::parked_slot> poison_told_;
  bool ended_ = false;
  bool disk_is_full_ = false; ///< the journal waits for room
  std::shared_ptr<std::atomic<bool>> waits_for_disk_ = std::make_shared<std::atomic<bool>>(true);
  common::task_thread journal_opener_{"journal-opener"}; ///< last: joined first
};

} // namespace dlrun::coordinator
