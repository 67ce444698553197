/// What of the passing time this process had.
#pragma once

#include "actors/protocol/time.hpp"

#include <algorithm>

namespace dlrun::agent {

/// Pure: tells how long this process was stopped, or did not get a processor, and how long ago its
/// actor had a turn, without such time.
class own_time {
public:
  /// @param late_min a thread that wakes that much later than it was to was not run
  explicit own_time(protocol::duration late_min)
      : late_min_{late_min} {}

  /// The thread that waits until `due` at the latest has woken. @returns the time that it did not
  /// have, 0 when it woke in time.
  protocol::duration woke(protocol::time_point due, protocol::time_point now) {
    const auto late = now - due;
    if (late < late_min_) return protocol::duration{0};
    not_had_ += late;
    return late;
  }
  /// The actor had its last turn at `last`.
  protocol::duration turn_age(protocol::time_point last, protocol::time_point now) {
    if (last != turn_) {
      turn_ = last;
      not_had_ = {};
    }
    return std::max(now - last - not_had_, protocol::duration{0});
  }

private:
  protocol::duration late_min_;
  protocol::time_point turn_{};
  protocol::duration not_had_{}; ///< since that turn
};

} // namespace dlrun::agent
