/// Failures of one kind, one after the other.
#pragma once

#include "actors/protocol/time.hpp"

#include <chrono>

namespace dlrun::ps_shard {

/// Tells a failure that lasts from one that goes by: it comes again and again, for a while.
class failure_streak {
public:
  static constexpr int failures_min = 5;
  static constexpr auto time_min = std::chrono::seconds(10);

  /// @returns whether it lasts
  bool add(protocol::time_point now) {
    if (count_++ == 0) since_ = now;
    return count_ >= failures_min && now - since_ >= time_min;
  }
  void end() { count_ = 0; }

private:
  int count_ = 0;
  protocol::time_point since_{};
};

} // namespace dlrun::ps_shard
