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
  /// @returns the event for it; nothing for an end that look() has told before.
  std::optional<protocol::job_event> hear(const protocol::stall& what, const std::string& host,
                                          protocol::time_point now);
  /// `step`: steps done. A coordinator that died does not say that a stall is over.
  /// @returns the event for one that is.
  std::optional<protocol::job_event> look(std::uint64_t step, protocol::time_point now);
  std::optional<stall_view> view(std::uint64_t step, protocol::time_point now) const;

private:
  struct stalled {
    protocol::stall what;
    std::string host;
    protocol::time_point since{};
  };

  std::optional<stalled> stalled_;
  std::optional<version_id> ended_; ///< the version of the stall whose end look() told last
};

/// "worker 2 on beta, which computes slot 5".
std::string describe(const protocol::stall& what, const std::string& host);

} // namespace dlrun::agent
