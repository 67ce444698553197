/// What a PS shard says of itself: to the dispatcher where it stands, to the agent that it lives.
#pragma once

#include "actors/common/clock.hpp"
#include "actors/common/job_context.hpp"
#include "actors/common/sender.hpp"
#include "actors/ps_shard/divergence_watch.hpp"
#include "actors/ps_shard/epoch_metrics.hpp"
#include "actors/ps_shard/stall_watch.hpp"
#include "actors/ps_shard/step_times.hpp"
#include "actors/ps_shard/threaded_store.hpp"

#include <functional>
#include <memory>
#include <optional>

namespace dlrun::ps_shard {

/// Status and heartbeats, and what is wrong: a disk that takes nothing, a gradient that is no
/// number. Keeps the figures that go into them. Called by the actor `self` only, inside its entry
/// lock.
class shard_reports {
public:
  using pointer = protocol::ps_shard_actor::base*;
  struct links {
    /// Where the core stands; what only this knows is filled in here.
    std::function<protocol::shard_status(std::uint64_t probe)> status;
    std::function<version_id()> applied;
    /// The agent says where the coordinator is.
    std::function<void(const protocol::coordinator_location&)> located;
    /// What is to be said of the copies of the store.
    std::function<protocol::copies_word()> copies;
  };

  /// `context` outlives this. Of `asked`, nothing is called before report() or send_status() is.
  shard_reports(pointer self, const common::role_context& context, links asked);

  /// Who dispatches now. What is on the way to a dispatcher of before is not waited for.
  void follow(const protocol::data_dispatcher_actor& dispatcher);
  /// It stands at what `store` restored. Nothing that diverged counts any more.
  void restart(std::shared_ptr<const threaded_store> store);
  void add(step_id step, const step_metrics& metrics);
  void on_served(version_id version) { step_times_.add(version, common::now()); }
  const std::optional<protocol::training_metrics>& metrics() const { return metrics_.sums(); }

  /// To the dispatcher, now.
  void send_status(std::uint64_t probe);
  /// To the agent: it lives. Before the first report() too.
  void report_alive();
  /// To dispatcher and agent, unless they still have the ones before in hand.
  void report();
  /// Periodic: report(), and what has been wrong for too long.
  void on_tick();

  // `why` the disk takes nothing, or nothing when it does again.
  void on_opening_stalled(const std::optional<error>& why);
  void on_log_stalled(const std::optional<error>& why) { tell(stalls_.on_log(why, common::now())); }
  void on_snapshot_stalled(const std::optional<error>& why) { tell(stalls_.on_snapshot(why, common::now())); }
  void on_diverged(step_id step, timeline_id timeline, const error& why);

private:
  protocol::shard_status status(std::uint64_t probe);
  void report_status();
  void tell(const std::optional<stall_watch::word>& news);
  void give_up_on_quota();
  void report_divergence();

  pointer self_;
  const common::role_context& context_;
  links asked_;
  protocol::data_dispatcher_actor dispatcher_;
  std::shared_ptr<const threaded_store> store_; ///< null where nothing is kept on disk
  epoch_metrics metrics_;
  step_times step_times_;
  stall_watch stalls_;
  divergence_watch divergence_;
  std::uint64_t sequence_ = 0;
  common::latest_sender<protocol::shard_status> status_sender_;
  common::latest_sender<protocol::heartbeat> heartbeat_sender_;
};

} // namespace dlrun::ps_shard
