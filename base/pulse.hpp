/// pulse: whether the loops of this process turn, and whether it is ready, for who probes it.
#pragma once

#include <atomic>
#include <chrono>

namespace dlrun::base {

/// Of one loop: until when it is to turn again. Thread-safe.
class loop_pulse {
public:
  using time_point = std::chrono::steady_clock::time_point;
  /// Loops here turn several times a second. So long none of them has anything to do.
  static constexpr std::chrono::seconds still_max{30};

  /// It has turned, and does so again within that time.
  void turn(time_point now = std::chrono::steady_clock::now(), std::chrono::seconds within = still_max) {
    due_ = now + within;
  }
  /// It has not begun, or is over.
  void rest() { due_ = time_point::max(); }
  bool is_stuck(time_point now) const { return now > due_.load(); }

private:
  std::atomic<time_point> due_{time_point::max()};
};

/// Of a process. Thread-safe.
class pulse {
public:
  loop_pulse main;  ///< of the thread that waits: for a root, to be the root, for hosts, for the end
  loop_pulse agent; ///< of the actor

  /// @param is_it in its place in a job
  void set_ready(bool is_it) { is_ready_ = is_it; }
  /// No loop is stuck. What no loop does, as reading what there is of a run, may take its time.
  bool is_alive(loop_pulse::time_point now) const { return !main.is_stuck(now) && !agent.is_stuck(now); }
  bool is_ready(loop_pulse::time_point now) const { return is_ready_ && is_alive(now); }

private:
  std::atomic<bool> is_ready_{false};
};

/// A loop that turns from its first turn on, as long as this lives.
class turning {
public:
  explicit turning(loop_pulse& of)
      : of_{of} {}
  turning(const turning&) = delete;
  turning& operator=(const turning&) = delete;
  ~turning() { of_.rest(); }

  void turn(std::chrono::seconds within = loop_pulse::still_max) {
    of_.turn(std::chrono::steady_clock::now(), within);
  }

private:
  loop_pulse& of_;
};

} // namespace dlrun::base
