/// How long a coordinator that is down is waited for.
#pragma once

#include "actors/protocol/time.hpp"

#include <optional>

namespace dlrun::agent {

/// Pure: says when a coordinator that waits for a fence comes back no more. It issues the fences of
/// all, its own too, so one that has used them up before it was there can issue none. But a grant
/// of the start before may be on its way.
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
