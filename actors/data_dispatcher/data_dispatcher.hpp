/// The data dispatcher actor: routes messages into data_dispatcher_core and carries its decisions out.
#pragma once

#include "actors/common/job_context.hpp"
#include "actors/data_dispatcher/data_dispatcher_core.hpp"

#include <map>
#include <memory>

namespace dlrun::data_dispatcher {

class data_dispatcher_state {
public:
  struct holder {
    std::unique_ptr<data_dispatcher_state> role;
    static inline const char* name = "data_dispatcher";
  };
  using pointer = protocol::local_data_dispatcher_actor::stateful_pointer<holder>;
  using behavior = protocol::local_data_dispatcher_actor::behavior_type;

  /// For `system.spawn(data_dispatcher_state::start, context, coordinator)`; lives in the coordinator's
  /// process.
  static behavior start(pointer self, common::role_context context, protocol::coordinator_actor coordinator);

private:
  data_dispatcher_state(pointer self, common::role_context context, protocol::coordinator_actor coordinator);
  behavior make_behavior();

  void on_worker_available(const protocol::worker_available& who, const protocol::worker_actor& handle);
  void on_worker_gone(const protocol::worker_gone& who);
  void on_worker_status(const protocol::worker_status& status);
  void on_tick();
  void report_progress();

  void carry_out(const data_dispatcher_actions& actions);
  void carry_out(const send_lease& action);
  void carry_out(const order_evaluation& action);
  void carry_out(const training_finished& action);
  void carry_out(const evaluation_finished& action);
  void carry_out(const slots_redispatched& action);
  void carry_out(const worker_contributed& action);
  /// Of snapshots and rewinds, of which the core was told that there are none.
  template <class Action>
  void carry_out(const Action&) {}

  pointer self_;
  common::role_context context_;
  protocol::coordinator_actor coordinator_;
  data_dispatcher_core core_;
  std::map<worker_id, protocol::worker_actor> workers_;
  std::map<std::pair<worker_id, dlrun::incarnation>, std::uint64_t> slots_computed_;
};

} // namespace dlrun::data_dispatcher
