/// Keeps one copy of the PS shard's store on another host, by its keeper.
///
///   own store ──> copy_sender ──> copy_part ──> keeper ──> copy_standing ──> copy_chain
#pragma once

#include "actors/common/job_context.hpp"
#include "actors/common/task_thread.hpp"
#include "actors/protocol/handles.hpp"
#include "actors/ps_shard/copy_chain.hpp"
#include "actors/ps_shard/copy_cost.hpp"
#include "actors/ps_shard/copy_sender.hpp"
#include "actors/ps_shard/copy_wait.hpp"
#include "actors/ps_shard/threaded_store.hpp"

#include <cstddef>
#include <functional>
#include <memory>

namespace dlrun::ps_shard {

/// The connection to one keeper, what it is sent, how long it is waited for, and what that costs.
/// What its copy has it tells the book of that copy. Called by the actor `self` only.
class store_copy {
public:
  using pointer = protocol::ps_shard_actor::base*;
  struct links {
    copy_chain* chain = nullptr; ///< outlives this
    /// What the chain has released for what happened here.
    std::function<void(const released_versions&)> released;
  };

  /// `context` outlives this.
  /// @param number of the copy, in the chain
  /// @param offers where the keeper will fetch what it is sent
  store_copy(pointer self, const common::role_context& context, std::size_t number,
             const std::shared_ptr<transport::segment_offers>& offers, links linked);

  /// The store is there, or stands elsewhere now.
  void restart(const std::shared_ptr<threaded_store>& store);
  /// It may have more that the copy lacks.
  void pump() { sender_.pump(); }
  /// @param waits for the copy: what of it the PS shard waits for
  void note(const awaited_parts& waits);
  void on_tick(const awaited_parts& waits);
  /// @param is_awaited the next version lacks nothing but what this copy has to get first
  void measure(version_id applied, bool is_awaited);

  // the agent, and the keeper
  /// An earlier start counted the copy of that start of the keeper.
  void begin_with(const protocol::keeper_place& place);
  void on_keeper(const protocol::keeper_place& place);
  /// @returns false of what is not to be heard
  bool on_standing(const protocol::copy_standing& standing, const own_store& mine);
  /// The own store may have dropped what a copy lacks that does not count yet.
  void look_again(const own_store& mine);
  void on_down(const caf::actor_addr& gone);

  // for the agent
  /// @param is_known the PS shard knows which copies it counts
  protocol::copy_word word(bool is_known, version_id applied) const;
  /// How often the copy has got further.
  std::uint64_t news() const { return wait_.news(); }
  std::uint64_t bytes_taken() const { return sender_.bytes_taken(); }
  protocol::duration waited() const { return cost_.waited(); }

private:
  const copy_book& book() const { return linked_.chain->of(number_); }
  copy_sender_options options_for(const std::shared_ptr<transport::segment_offers>& offers);
  void connect();
  void lose();
  void hear(const released_versions& news, dlrun::incarnation counted_before);

  pointer self_;
  const common::role_context& context_;
  std::size_t number_;
  links linked_;
  protocol::role_name keeper_role_;
  protocol::keeper_place place_;
  protocol::keeper_actor keeper_; ///< null while there is no connection
  dlrun::incarnation link_{};     ///< start of the keeper to which it leads
  bool is_connecting_ = false;
  copy_wait wait_;
  copy_cost cost_;
  copy_sender sender_;
  common::task_thread reader_{"copy"}; ///< last: its tasks use what is above
};

} // namespace dlrun::ps_shard
