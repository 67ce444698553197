/// A listening socket among what a service waits for.
#pragma once

#include "base/unique_fd.hpp"

#include <chrono>
#include <functional>
#include <poll.h>
#include <vector>

namespace dlrun::base {

/// Pause of accept() when descriptors or memory have run out: the waiting connection would make
/// poll() spin.
inline constexpr std::chrono::milliseconds accept_pause{50};

/// Accepts connections, as long as its service has room for them. Used by one thread.
class listener {
public:
  using time_point = std::chrono::steady_clock::time_point;

  /// `socket` listens and does not block.
  explicit listener(unique_fd socket)
      : socket_(std::move(socket)) {}

  /// Adds what to wait for: nothing without room, nor in a pause. @returns when the pause under way
  /// is over; time_point::max() when there is none.
  time_point watch(std::vector<pollfd>& fds, bool has_room, time_point now) const {
    fds.push_back({has_room && now >= again_ ? socket_.get() : -1, POLLIN, 0});
    return again_ > now ? again_ : time_point::max();
  }

  /// Hands every connection that waits (non-blocking, close-on-exec) to `take`, which returns
  /// whether there is room for another.
  void accept_waiting(time_point now, const std::function<bool(unique_fd)>& take);

private:
  unique_fd socket_;
  time_point again_{};
};

} // namespace dlrun::base
