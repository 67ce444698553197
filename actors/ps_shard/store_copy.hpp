/// Keeps a copy of the PS shard's store on another host, by its keeper.
///
///   own store ──> events ──> copy_book ──> released_versions ──> core
///                    │           ▲
///                    └─> copy_sender ──> copy_part ──> keeper ──> copy_standing
#pragma once

#include "actors/common/job_context.hpp"
#include "actors/common/task_thread.hpp"
#include "actors/protocol/handles.hpp"
#include "actors/ps_shard/copy_cost.hpp"
#include "actors/ps_shard/copy_sender.hpp"
#include "actors/ps_shard/copy_start.hpp"
#include "actors/ps_shard/copy_wait.hpp"
#include "actors/ps_shard/step_pipeline.hpp"
#include "actors/ps_shard/threaded_store.hpp"

#include <functional>
#include <memory>
#include <optional>

namespace dlrun::ps_shard {

/// Where a job keeps no copies it passes on what it is told. Called by the actor `self` only.
class store_copy {
public:
  using pointer = protocol::ps_shard_actor::base*;
  struct events {
    std::function<void()> ask; ///< the agent, which answers with on_keeper()
    /// Once: it can begin. An earlier start may have counted the copy, which now has all that this
    /// one begins with, or counts no more.
    std::function<void(const loaded_standing& restored)> settled;
    // For the core, when every store that counts has it.
    std::function<void(version_id)> committed;
    std::function<void(timeline_id, version_id)> snapshot_durable;
  };

  /// `context` outlives this.
  store_copy(pointer self, const common::role_context& context, events told);

  /// From there the keeper will fetch what it is sent. To be called once, before restart().
  void offer_at(const std::shared_ptr<transport::segment_offers>& offers);
  /// The store is there, and stands at that version. The first time it asks until it is settled;
  /// from then on on_tick() is to be called.
  void restart(std::shared_ptr<threaded_store> store, const loaded_standing& restored);

  // the own store
  void on_logged(version_id version);
  void on_snapshot(timeline_id timeline, version_id version);
  /// The core may have got further, or wait for something else now.
  void on_core(const step_pipeline& steps);
  // the agent, and the keeper
  void on_keeper(const protocol::keeper_place& place);
  void on_standing(const protocol::copy_standing& standing);
  void on_down(const caf::actor_addr& gone);
  void on_tick();

  /// For the agent. Its progress is how often the copy has got further.
  protocol::copy_word word() const;

private:
  own_store mine() const;
  void take(const released_versions& news);
  awaited_parts waits() const;
  void measure();
  void settle();
  void ask_until_settled();
  void connect();
  void lose();

  pointer self_;
  const common::role_context& context_;
  events told_;
  std::shared_ptr<threaded_store> store_;
  copy_book book_;
  copy_start start_;
  protocol::keeper_place place_;
  protocol::keeper_actor keeper_; ///< null while there is no connection
  dlrun::incarnation link_{};     ///< start of the keeper to which it leads
  bool is_connecting_ = false;
  copy_wait wait_;
  copy_cost cost_;
  store_wait held_by_ = store_wait::nothing;
  version_id applied_{};
  std::optional<copy_sender> sender_;           ///< nothing where no copies are kept, as is the next
  std::unique_ptr<common::task_thread> reader_; ///< last: its tasks use what is above
};

} // namespace dlrun::ps_shard
