/// The PS shard actor: routes messages into ps_shard_core and carries its decisions out.
///
///   push ──> gradient_inbox ──> ps_shard_core ──> version_maker ──> attached_workers ──> shard_state
///   part ──> gradient_inbox ───────────────────────────┘ │
///   norm ──> shard_links <──> ps_shard_core              └──> threaded_store: log, snapshots
///   rewind ──> ps_shard_core ──> shard_disk
///   threaded_store ──> store_copies <──> keepers; what all have ──> ps_shard_core
///   snapshot_request ──> snapshot_lender        tick ──> shard_reports ──> status, heartbeat
#pragma once

#include "actors/common/ask.hpp"
#include "actors/common/job_context.hpp"
#include "actors/link/io_thread_actor.hpp"
#include "actors/ps_shard/attached_workers.hpp"
#include "actors/ps_shard/failure_streak.hpp"
#include "actors/ps_shard/gradient_inbox.hpp"
#include "actors/ps_shard/heard_doorbell.hpp"
#include "actors/ps_shard/move_order.hpp"
#include "actors/ps_shard/ps_shard_core.hpp"
#include "actors/ps_shard/shard_disk.hpp"
#include "actors/ps_shard/shard_links.hpp"
#include "actors/ps_shard/shard_reports.hpp"
#include "actors/ps_shard/snapshot_lender.hpp"
#include "actors/ps_shard/store_copies.hpp"
#include "actors/ps_shard/version_maker.hpp"

#include <memory>
#include <optional>
#include <utility>

namespace dlrun::ps_shard {

/// The shell of a PS shard: opens store and memory, enters the job, hands each message to the part
/// that it is for, and each action of the core to the part that carries it out. Runs on the thread
/// of the sockets; its value thread may enter it.
class ps_shard_state {
public:
  struct holder {
    std::unique_ptr<ps_shard_state> role;
    static inline const char* name = "ps_shard";
  };
  using pointer = link::io_thread_actor<holder, protocol::ps_shard_actor>*;
  using behavior = protocol::ps_shard_actor::behavior_type;

  /// For `system.spawn(ps_shard_state::start, context)`. The actor quits with an error if it cannot
  /// get memory or threads, cannot use its store, is refused by the coordinator, or is fenced.
  static behavior start(pointer self, common::role_context context);
  ~ps_shard_state();

private:
  using bell = attached_workers::bell;

  ps_shard_state(pointer self, common::role_context context);
  behavior make_behavior();

  // its start, from memory and disk to the first word to the coordinator
  result<void> acquire();
  result<void> open_channel();
  result<void> enter(loaded_standing restored);
  threaded_store_events make_store_events();
  void join();
  void on_joined(const protocol::join_reply& reply, const protocol::data_dispatcher_actor& dispatcher);

  void listen(const bell& one);
  void on_push(const protocol::push& push);
  void on_part(const protocol::push& push, std::uint64_t from);
  void note_early(const protocol::push& push, const gradient& part);
  void on_pull(const protocol::pull& pull, const protocol::worker_actor& from);
  void on_directory(const protocol::directory& directory, const protocol::data_dispatcher_actor& dispatcher);
  void on_snapshot_request(const protocol::snapshot_request& request, const protocol::worker_actor& from);
  void on_tick();

  void carry_out(const ps_shard_actions& actions);
  void carry_out(const ps_shard_action& action);
  void go_back(const perform_rewind& order);
  version_maker::events make_version_events();
  void on_applied(step_id step, const std::optional<step_metrics>& metrics, protocol::duration took);
  void on_located(const protocol::coordinator_location& location);
  void follow_move_order();
  void quit(const std::string& why, caf::sec code = caf::sec::runtime_error);

  pointer self_;
  common::role_context context_;
  common::poster<protocol::ps_shard_actor> post_;
  std::optional<ps_shard_core> core_;                      ///< from when it is known where the store stands
  protocol::endpoint endpoint_;                            ///< once it can be reached
  std::pair<dlrun::incarnation, std::uint64_t> directory_; ///< coordinator and sequence of the newest
  std::uint64_t next_value_ = 1;
  bool has_applied_ = false;        ///< a step, since this start
  move_order moves_;                ///< R37
  failure_streak failed_snapshots_; ///< not for want of room

  std::shared_ptr<transport::segment_offers> server_;
  std::unique_ptr<gradient_inbox> inbox_;
  attached_workers workers_;
  shard_links others_;
  shard_reports reports_;
  std::unique_ptr<snapshot_lender> lender_;
  shard_disk disk_;
  store_copies copies_;
  version_maker maker_; ///< last: its thread ends before what its tasks use goes
};

} // namespace dlrun::ps_shard
