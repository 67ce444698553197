/// The fences with which a role may be started (rule R4, the agent's half).
#pragma once

#include "actors/protocol/roles.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <vector>

namespace dlrun::agent {

/// Pure: of one role. Each fence is used once, the oldest first, and a grant that comes again, or
/// late, adds nothing.
class fence_stock {
public:
  void add(const std::vector<protocol::fence>& granted) {
    for (const auto& fence : granted) {
      if (fence.incarnation <= newest_.incarnation) continue;
      newest_ = fence;
      unused_.push_back(fence);
    }
  }
  /// One that nobody granted: an incarnation further than any that ever was here.
  void make_next() {
    ++newest_.incarnation.value;
    unused_.push_back(newest_);
  }
  /// Those up to that incarnation are not to be used any more. There is one beyond it.
  void go_beyond(dlrun::incarnation last) {
    std::erase_if(unused_, [last](const auto& fence) { return fence.incarnation <= last; });
    newest_.incarnation = std::max(newest_.incarnation, last);
    if (unused_.empty()) make_next();
  }
  /// Nothing when none is left.
  std::optional<protocol::fence> take() {
    if (unused_.empty()) return std::nullopt;
    const auto oldest = unused_.front();
    unused_.pop_front();
    return oldest;
  }
  bool empty() const { return unused_.empty(); }
  std::size_t size() const { return unused_.size(); }

private:
  protocol::fence newest_{}; ///< ever here
  std::deque<protocol::fence> unused_;
};

} // namespace dlrun::agent
