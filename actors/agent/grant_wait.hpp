/// How long a coordinator that is down waits for a fence.
#pragma once

#include "actors/protocol/time.hpp"

#include <optional>

namespace dlrun::agent {

/// Pure: says when a coordinator that waits for a fence is to be given one by the root (R4). It
/// issues the fences of all, its own too, and may die before it has granted any. But a grant of the
/// start before may be on its way.
class grant_wait {
public:
  explicit grant_wait(protocol::duration patience)
      : patience_(patience) {}

  /// Periodic. @param waits the coordinator is to start, and has no fence  @returns whether it has
  /// waited for long enough
  bool is_over(bool waits, protocol::time_point now) {
    if (!waits)
      since_.reset();
    else if (!since_)
      since_ = now;
    return since_ && now - *since_ >= patience_;
  }

private:
  protocol::duration patience_;
  std::optional<protocol::time_point> since_;
};

} // namespace dlrun::agent
