/// Whom training waits for, as the user is told.
#pragma once

#include "actors/protocol/event_messages.hpp"
#include "actors/protocol/stall_messages.hpp"
#include "actors/protocol/time.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace dlrun::agent {

/// A stall that lasts.
struct stall_view {
  protocol::stall what;
  std::string host;           ///< where that role runs; "" where the job has one host
  protocol::duration lasts{}; ///< since the newest version was made
};

/// Pure: the stall that the coordinator told of last, until it is over or a step was made.
class stall_board {
public:
  /// `host`: where the role that is blamed runs, "" where the job has one.
  /// @returns the event for it.
  protocol::job_event hear(const protocol::stall& what, const std::string& host, protocol::time_point now);
  /// `step`: steps done. A coordinator that died does not say that a stall is over.
  std::optional<stall_view> view(std::uint64_t step, protocol::time_point now) const;

private:
  struct stalled {
    protocol::stall what;
    std::string host;
    protocol::time_point since{};
  };

  std::optional<stalled> stalled_;
};

/// "worker 2 on beta, which computes slot 5".
std::string describe(const protocol::stall& what, const std::string& host);

} // namespace dlrun::agent
