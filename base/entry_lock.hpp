/// Who may be inside an actor: its handlers, or a thread of its own that a message would reach too
/// late.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

namespace dlrun::base {

/// A lock that knows its holder: that of a monitor. (C. A. R. Hoare, "Monitors: An Operating System
/// Structuring Concept", 1974: one thread at a time inside, whichever it is.)
class entry_lock {
public:
  void lock() {
    mutex_.lock();
    holder_ = std::this_thread::get_id();
  }
  void unlock() {
    holder_ = std::thread::id{};
    mutex_.unlock();
  }
  bool is_mine() const { return holder_ == std::this_thread::get_id(); }

  /// Runs `body` without the lock, should the caller hold it: for what waits for a thread that
  /// wants to enter.
  template <class Body>
  void outside(Body body) {
    const bool was_inside = is_mine();
    if (was_inside) unlock();
    body();
    if (was_inside) lock();
  }

private:
  std::mutex mutex_;
  std::atomic<std::thread::id> holder_{};
};

} // namespace dlrun::base
