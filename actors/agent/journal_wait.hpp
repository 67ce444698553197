/// When a coordinator that waits for its journal moves to another host.
#pragma once

#include "actors/protocol/time.hpp"

#include <cstddef>
#include <optional>
#include <utility>

namespace dlrun::agent {

/// Pure: says when a coordinator has waited for its journal long enough on one host. The journal
/// may be out of reach for that host alone. But an outage of the journal itself must not use up the
/// fences, so the last ones stay.
class journal_wait {
public:
  /// Fences that a coordinator which is moved must leave: for its next start, and for one more.
  static constexpr std::size_t fences_min = 2;

  /// @param patience how long it waits on one host; nothing: there is no other.
  explicit journal_wait(std::optional<protocol::duration> patience)
      : patience_(patience) {}

  /// Periodic. @param waits the coordinator that runs says that it waits, @param fences left for
  /// it. @returns whether it is to be moved now, once.
  bool is_over(bool waits, std::size_t fences, protocol::time_point now) {
    if (!patience_ || !waits || fences < fences_min) {
      since_.reset();
      return false;
    }
    if (!since_) since_ = now;
    if (now - *since_ < *patience_) return false;
    since_.reset();
    is_moved_ = true;
    return true;
  }
  /// The coordinator has ended. @returns whether it was to be moved.
  bool on_end() {
    since_.reset();
    return std::exchange(is_moved_, false);
  }

private:
  std::optional<protocol::duration> patience_;
  std::optional<protocol::time_point> since_;
  bool is_moved_ = false;
};

} // namespace dlrun::agent
