/// A thread that works for one actor, so that the actor's handlers never block.
#pragma once

#include "base/wake_event.hpp"
#include "transport/doorbell.hpp"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>

namespace dlrun::common {

/// Runs tasks of an actor one after the other on its own thread, so that the actor's handlers never
/// block. The actor's core bounds the queue (open steps and their subtrees). Doorbells of other
/// processes can wake the thread too, without another thread of this process.
class task_thread {
public:
  /// `name` is what tools show of the thread: at most 15 characters.
  explicit task_thread(const char* name);
  ~task_thread() { stop(); }
  task_thread(const task_thread&) = delete;
  task_thread& operator=(const task_thread&) = delete;

  /// Finishes the task in hand, drops the rest, and ends the thread. Nothing runs afterwards.
  void stop();

  void run(std::function<void()> task);

  /// For what nobody waits for: does not wake the thread, which gets to it with the next task.
  void run_later(std::function<void()> task);

  /// For what takes hardly more time than to wake a thread: runs it before it returns, on the
  /// caller's thread, after what was queued by run_later(); as run() while the thread has work.
  /// Tasks never overlap.
  void run_here(std::function<void()> task);

  /// Gets each packet; nothing when the other end has gone, and that is the last call. It runs on
  /// this thread between tasks, where run() queues without waking anybody. Returns whether to go on
  /// listening.
  using listener = std::function<bool(std::optional<std::span<const std::byte>> packet)>;
  /// Listens to `bell` until it is gone or `heard` returns false, and keeps it as long. Packets
  /// that wait are taken before the next task begins. @returns system when the OS refuses.
  result<void> listen(std::shared_ptr<const transport::doorbell> bell, listener heard);

  /// Whether the caller is this thread.
  bool is_current() const { return std::this_thread::get_id() == thread_.get_id(); }

private:
  struct heard_bell {
    std::shared_ptr<const transport::doorbell> bell;
    listener heard;
  };
  /// What the thread sleeps on from the first doorbell on; before that it is the condition.
  struct waiting_place {
    base::unique_fd epoll;
    base::wake_event event;
  };

  static result<waiting_place> make_waiting_place();
  void loop();
  void run_next(std::unique_lock<std::mutex>& lock);
  void wake();
  void sleep(std::unique_lock<std::mutex>& lock);
  void hear(std::unique_lock<std::mutex>& lock, bool may_sleep);
  void take_packets(int descriptor);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::size_t called_ = 0; ///< tasks up to the last that the thread was woken for
  bool running_ = false;   ///< a task, here or there
  bool stopping_ = false;
  std::optional<waiting_place> place_;                     ///< never taken back
  std::map<int, std::shared_ptr<const heard_bell>> bells_; ///< by descriptor
  std::thread thread_;
};

} // namespace dlrun::common
