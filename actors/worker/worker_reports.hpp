/// What a worker says of itself: to the dispatcher what it works on, to the agent that it lives.
#pragma once

#include "actors/common/job_context.hpp"
#include "actors/common/sender.hpp"
#include "actors/protocol/speed_meter.hpp"

#include <functional>
#include <optional>

namespace dlrun::worker {

/// Status and heartbeats, and what ends the job: a gradient that is no number, data that cannot be
/// evaluated. Called by the actor `self` only, inside its entry lock.
class worker_reports {
public:
  using pointer = protocol::worker_actor::base*;
  struct links {
    std::function<protocol::worker_status()> status;
    std::function<const char*()> activity; ///< since it has joined: "training", ...
    /// The agent says where the coordinator is.
    std::function<void(const protocol::coordinator_location&)> located;
  };

  /// `context` outlives this.
  worker_reports(pointer self, const common::role_context& context, links asked);

  /// Who dispatches now. What is on the way to a dispatcher of before is not waited for.
  void follow(const protocol::data_dispatcher_actor& dispatcher);

  template <class Message>
  void tell_dispatcher(const Message& message) const {
    if (dispatcher_) self_->send(dispatcher_, message);
  }
  void report_status();
  /// To dispatcher and agent, unless they still have the ones before in hand.
  void report();
  /// Periodic: report(), and what ends the job, until it has ended.
  void on_tick();

  void on_diverged(const protocol::divergence& what);
  void on_unusable_data(const protocol::stop_job& why);

private:
  void report_alive();
  void measure_speed(const protocol::worker_status& status);

  pointer self_;
  const common::role_context& context_;
  links asked_;
  protocol::data_dispatcher_actor dispatcher_;
  protocol::speed_meter speed_;
  std::uint64_t slots_measured_ = 0, compute_us_measured_ = 0; ///< that are in it
  std::optional<protocol::divergence> diverged_;
  std::optional<protocol::stop_job> unusable_data_;
  common::latest_sender<protocol::worker_status> status_sender_;
  common::latest_sender<protocol::heartbeat> heartbeat_sender_;
};

} // namespace dlrun::worker
