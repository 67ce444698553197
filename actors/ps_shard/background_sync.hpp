/// Syncs the log of a PS shard now and then (durability.sync: process).
#pragma once

#include "persistence/shard_store.hpp"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace dlrun::ps_shard {

/// So that a power cut costs about the last second, and not all that the operating system has not written
/// yet. Nobody waits for it. On a slow disk it syncs less often: a tenth of the time at most.
class background_sync {
public:
  /// `store` must outlive this object. `failed` is called on its thread, at most once: the store must be
  /// opened again.
  background_sync(persistence::shard_store& store, std::function<void(const error&)> failed,
                  std::chrono::milliseconds period = std::chrono::milliseconds(1000));
  /// Waits for the sync in hand.
  ~background_sync();
  background_sync(const background_sync&) = delete;
  background_sync& operator=(const background_sync&) = delete;

private:
  void loop();

  persistence::shard_store& store_;
  std::function<void(const error&)> failed_;
  std::chrono::milliseconds period_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;
};

} // namespace dlrun::ps_shard
