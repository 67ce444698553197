/// The worker actor: routes messages into worker_core and carries its decisions out.
///
///   directory ──> worker_core ──> shard_links ──> pull ──> shard_state (message or shard_doorbells)
///   shard_state ──> worker_core ──> parameter_sources ──> gradient_maker ──> worker_core
///   worker_core ──> push (shard_doorbells or shard_links)    evaluate, snapshot_offer ──> evaluations
///   tick ──> worker_core, worker_reports ──> status, heartbeat
#pragma once

#include "actors/common/ask.hpp"
#include "actors/common/job_context.hpp"
#include "actors/link/io_thread_actor.hpp"
#include "actors/worker/evaluations.hpp"
#include "actors/worker/gradient_maker.hpp"
#include "actors/worker/parameter_sources.hpp"
#include "actors/worker/shard_doorbells.hpp"
#include "actors/worker/shard_links.hpp"
#include "actors/worker/worker_core.hpp"
#include "actors/worker/worker_reports.hpp"
#include "transport/tensor_channel.hpp"

#include <deque>
#include <memory>

namespace dlrun::worker {

/// The shell of a worker: opens data, device and memory, enters the job, hands each message to the
/// part that it is for, and each action of the core to the part that carries it out. Runs on the
/// thread of the sockets; its compute thread may enter it.
class worker_state {
public:
  struct holder {
    std::unique_ptr<worker_state> role;
    static inline const char* name = "worker";
  };
  using pointer = link::io_thread_actor<holder, protocol::worker_actor>*;
  using behavior = protocol::worker_actor::behavior_type;

  /// For `system.spawn(worker_state::start, context)`. The actor quits with an error if it cannot
  /// open its data or get memory, is refused by the coordinator, or is fenced.
  static behavior start(pointer self, common::role_context context);
  ~worker_state();

private:
  worker_state(pointer self, common::role_context context);
  behavior make_behavior();
  common::way_back way_back();
  worker_reports::links make_report_links();
  gradient_maker::events make_gradient_events();

  // its start, from the data to the first word to the coordinator
  result<void> acquire();
  void make_parts();
  evaluations::links make_evaluation_links();
  void on_published(const protocol::endpoint& at);
  void on_joined(const protocol::join_reply& reply, const protocol::data_dispatcher_actor& dispatcher);

  void on_shard_state(const protocol::shard_state& state);
  void on_lease(const protocol::lease& lease);
  void on_directory(const protocol::directory& directory, const protocol::data_dispatcher_actor& dispatcher);
  void on_leave();
  void on_tick();

  /// What the core orders while this runs, since an action ended at once, comes after what it has
  /// ordered before.
  void carry_out(worker_actions actions);
  void carry_out(const worker_action& action);
  void wake_after(protocol::duration time);
  void fetch(const fetch_part& order);
  void push(const push_gradient& order);
  void on_diverged(step_id step, std::optional<slot_id> slot, const std::string& text);
  void quit(const std::string& why);

  pointer self_;
  common::role_context context_;
  common::poster<protocol::worker_actor> post_;
  bool has_computed_ = false; ///< a gradient
  protocol::endpoint endpoint_;
  worker_core core_;
  std::deque<worker_action> ordered_; ///< by the core, not carried out yet
  bool carries_out_ = false;

  std::shared_ptr<transport::segment_offers> server_;
  std::unique_ptr<transport::segment_fetches> client_;
  shard_links links_;
  std::unique_ptr<shard_doorbells> bells_;
  std::unique_ptr<parameter_sources> sources_;
  worker_reports reports_;
  std::unique_ptr<evaluations> evaluations_;
  gradient_maker maker_; ///< last: its thread ends before what its tasks use goes
};

} // namespace dlrun::worker
