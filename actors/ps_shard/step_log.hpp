/// Appends steps to the log of a PS shard on its own thread, as many at once as have come together.
#pragma once

#include "persistence/shard_store.hpp"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace dlrun::ps_shard {

/// A step on its way to the log.
struct step_to_log {
  step_id step;
  timeline_id timeline;
  std::string extra; ///< as encode(step_extra) makes it
  std::span<const float> root;
  std::shared_ptr<const void> memory; ///< keeps `root`
  /// Whether `root` is still what it was, asked when it was written. May be empty.
  std::function<bool()> intact;
};

/// No room on the disk, or not within the job's quota: it can be tried again.
bool is_full(const error& why);

/// What the log tells; called on its thread.
struct step_log_events {
  /// Every step below `version` of `timeline` is in the log, as durable as the store's mode says.
  std::function<void(timeline_id timeline, version_id version)> committed;
  /// The disk does not take it; tried again and again. nullopt: it does again.
  std::function<void(const std::optional<error>& why)> stalled;
  /// It cannot go on: the store must be opened again.
  std::function<void(const error& why)> broken;
};

/// What waits is bounded by the one who appends (R7: at most B steps).
class step_log {
public:
  /// `store` must outlive this object. `retry_after`: between two tries while the disk is full.
  step_log(persistence::shard_store& store, step_log_events events,
           std::chrono::milliseconds retry_after = std::chrono::milliseconds(500));
  /// Finishes the write in hand, drops the rest.
  ~step_log();
  step_log(const step_log&) = delete;
  step_log& operator=(const step_log&) = delete;

  /// No more events; whoever waits is told so. The destructor does it too.
  void stop();

  /// Steps in order. One of a timeline that was left is dropped, as those are that waited then.
  void append(step_to_log step);
  /// Runs `what` on the log's thread, between two writes: what else belongs to the thread that
  /// appends.
  void between_writes(std::function<void()> what);
  /// Drops the steps that wait, and then the same: for a rewind to `timeline`.
  void interrupt(timeline_id timeline, std::function<void()> what);
  /// Waits until the log of `timeline` holds every step below `version`. @returns false when it
  /// never will (stopped, broken, rewound).
  bool wait_for(timeline_id timeline, version_id version);

private:
  void loop();
  void write(std::unique_lock<std::mutex>& lock);
  result<void> append_all(const std::vector<step_to_log>& steps);
  void note_stall(const std::optional<error>& why);

  persistence::shard_store& store_;
  step_log_events events_;
  std::chrono::milliseconds retry_after_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<step_to_log> waiting_; ///< the first ones may be being written
  std::deque<std::function<void()>> tasks_;
  std::uint64_t interruptions_ = 0;
  timeline_id timeline_; ///< newest
  version_id logged_;
  bool stalled_ = false;
  bool stopping_ = false;
  bool broken_ = false;
  std::thread thread_;
};

} // namespace dlrun::ps_shard
