/// The data dispatcher actor: routes messages into data_dispatcher_core and carries its decisions
/// out.
#pragma once

#include "actors/common/clock.hpp"
#include "actors/common/job_context.hpp"
#include "actors/common/job_journal.hpp"
#include "actors/data_dispatcher/course_journal.hpp"
#include "actors/data_dispatcher/data_dispatcher_core.hpp"
#include "actors/link/io_thread_actor.hpp"

#include <functional>
#include <map>
#include <memory>

namespace dlrun::data_dispatcher {

/// The shell of the data dispatcher: hands each message to the core, and sends and journals what
/// the core decides. Runs on the thread of the sockets.
class data_dispatcher_state {
public:
  struct holder {
    std::unique_ptr<data_dispatcher_state> role;
    static inline const char* name = "data_dispatcher";
  };
  using pointer = link::io_thread_actor<holder, protocol::local_data_dispatcher_actor>*;
  using behavior = protocol::local_data_dispatcher_actor::behavior_type;

  /// What a dispatcher starts with beside its context.
  struct arguments {
    protocol::coordinator_actor coordinator;
    std::shared_ptr<common::job_journal> journal;            ///< null where nothing is kept on disk
    std::function<protocol::time_point()> now = common::now; ///< the time by which it decides
  };

  /// For `system.spawn(data_dispatcher_state::start, context, arguments)`; lives in the
  /// coordinator's process. Quits with an error when the journal cannot be read or written.
  static behavior start(pointer self, common::role_context context, arguments with);

private:
  data_dispatcher_state(pointer self, common::role_context context, arguments with, journaled_course course);
  behavior make_behavior();

  void on_worker_available(const protocol::worker_available& who, const protocol::worker_actor& handle);
  void on_ps_shard_available(const protocol::ps_shard_available& who, const protocol::ps_shard_actor& handle);
  void on_tick();

  void carry_out(const data_dispatcher_actions& actions);
  void carry_out(const to_worker& action);
  void carry_out(const to_ps_shard& action);
  void carry_out(const to_coordinator& action);
  void carry_out(const journal_course& action);
  void carry_out(const decision_made& action);
  void quit(const std::string& why);

  pointer self_;
  common::role_context context_;
  arguments with_;
  course_writer writer_;
  data_dispatcher_core core_;
  std::map<worker_id, protocol::worker_actor> workers_;
  std::map<ps_shard_id, protocol::ps_shard_actor> ps_shards_;
};

} // namespace dlrun::data_dispatcher
