/// Keeps the copies of the PS shard's store on other hosts, by their keepers.
///
///   own store ──> events ──> copy_chain ──> released_versions ──> core
///                    │           ▲
///                    └─> store_copy, of each <──> keeper
#pragma once

#include "actors/ps_shard/copy_start.hpp"
#include "actors/ps_shard/step_pipeline.hpp"
#include "actors/ps_shard/store_copy.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace dlrun::ps_shard {

/// Where a job keeps no copies it passes on what it is told. Called by the actor `self` only.
class store_copies {
public:
  using pointer = protocol::ps_shard_actor::base*;
  struct events {
    std::function<void()> ask; ///< the agent, which answers with on_keepers()
    /// Once: it can begin. An earlier start may have counted copies, which now have all that this
    /// one begins with, or count no more.
    std::function<void(const loaded_standing& restored)> settled;
    // For the core, when every store that counts has it.
    std::function<void(version_id)> committed;
    std::function<void(timeline_id, version_id)> snapshot_durable;
  };

  /// `context` outlives this.
  store_copies(pointer self, const common::role_context& context, events told);

  /// From there the keepers will fetch what they are sent. To be called once, before restart().
  void offer_at(const std::shared_ptr<transport::segment_offers>& offers);
  /// The store is there, and stands at that version. The first time it asks until it is settled;
  /// from then on on_tick() is to be called.
  void restart(std::shared_ptr<threaded_store> store, const loaded_standing& restored);

  // the own store
  void on_logged(version_id version);
  void on_snapshot(timeline_id timeline, version_id version);
  /// The core may have got further, or wait for something else now.
  void on_core(const step_pipeline& steps);
  // the agent, and the keepers
  void on_keepers(const protocol::keeper_places& places);
  void on_standing(const protocol::copy_standing& standing);
  void on_down(const caf::actor_addr& gone);
  void on_tick();

  /// For the agent. Its progress is how often copies have got further.
  protocol::copies_word word() const;

private:
  own_store mine() const { return store_ ? store_->held() : own_store{}; }
  void take(const released_versions& news);
  awaited_parts waits_for(std::size_t copy) const;
  void pump();
  void measure();
  void settle();
  void ask_until_settled();

  pointer self_;
  const common::role_context& context_;
  events told_;
  std::shared_ptr<threaded_store> store_;
  copy_chain chain_;
  copy_start start_;
  store_wait held_by_ = store_wait::nothing;
  version_id applied_{};
  std::vector<std::unique_ptr<store_copy>> copies_;
};

} // namespace dlrun::ps_shard
