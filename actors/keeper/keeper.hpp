/// The keeper actor: holds the copy of a PS shard's store on another host.
///
///   copy_part ──> part_fetcher ──> disk thread: store_mirror ──> copy_standing ──> PS shard
///   tick ──> heartbeat ──> agent, which tells the PS shard where this keeper is
#pragma once

#include "actors/common/job_context.hpp"
#include "actors/common/sender.hpp"
#include "actors/common/task_thread.hpp"
#include "actors/keeper/part_fetcher.hpp"
#include "actors/keeper/store_mirror.hpp"
#include "actors/link/io_thread_actor.hpp"

#include <memory>
#include <optional>

namespace dlrun::keeper {

/// The shell of a keeper: hands each part that the PS shard sends to a store_mirror on the thread
/// of the disk, and reports to the PS shard and the agent. Runs on the thread of the sockets.
class keeper_state {
public:
  struct holder {
    std::unique_ptr<keeper_state> role;
    static inline const char* name = "keeper";
  };
  using pointer = link::io_thread_actor<holder, protocol::keeper_actor>*;
  using behavior = protocol::keeper_actor::behavior_type;

  /// For `system.spawn(keeper_state::start, context)`. The actor quits with an error when a newer
  /// start of its PS shard has the store, the store must be opened again, or there are no sockets.
  static behavior start(pointer self, common::role_context context);

private:
  keeper_state(pointer self, common::role_context context);
  behavior make_behavior();
  result<void> open_channel();

  void on_part(const protocol::copy_part& part);
  void on_taken(const protocol::ps_shard_actor& shard,
                const result<std::optional<protocol::copy_standing>>& answer);
  void quit(const std::string& why);
  void on_tick();

  pointer self_;
  common::role_context context_;
  common::poster<protocol::keeper_actor> post_;
  protocol::endpoint endpoint_;
  protocol::heartbeat word_; ///< newest; that the copy is whole the agent knows better
  common::latest_sender<protocol::heartbeat> heartbeat_sender_;
  std::shared_ptr<store_mirror> mirror_; ///< of the disk thread
  common::task_thread disk_{"copy"};     ///< its tasks use what is above
  std::optional<part_fetcher> fetcher_;  ///< last: no task waits any more for what it fetched
};

} // namespace dlrun::keeper
