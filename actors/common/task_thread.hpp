/// A thread that works for one actor, so that the actor's handlers never block.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace dlrun::common {

/// Runs tasks one after the other on its own thread, so that the actor's handlers never block. What is queued
/// is bounded by the core (open steps and their subtrees).
class task_thread {
public:
  task_thread();
  /// Finishes the task in hand, drops the rest.
  ~task_thread();
  task_thread(const task_thread&) = delete;
  task_thread& operator=(const task_thread&) = delete;

  void run(std::function<void()> task);

private:
  void loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::thread thread_;
};

} // namespace dlrun::common
