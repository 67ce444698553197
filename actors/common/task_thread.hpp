/// A thread that works for one actor, so that the actor's handlers never block.
#pragma once

#include <condition_variable>
#include <cstddef>
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

  /// For what nobody waits for: does not wake the thread, which gets to it with the next task.
  void run_later(std::function<void()> task);

  /// For what takes hardly more time than to wake a thread: runs it before it returns, on the caller's
  /// thread, after what was queued by run_later(); as run() while the thread has work. Tasks never overlap.
  void run_here(std::function<void()> task);

private:
  void loop();
  void run_next(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::size_t called_ = 0; ///< tasks up to the last that the thread was woken for
  bool running_ = false;   ///< a task, here or there
  bool stopping_ = false;
  std::thread thread_;
};

} // namespace dlrun::common
