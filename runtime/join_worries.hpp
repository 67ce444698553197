/// When a host that is not let in says more than that it waits.
#pragma once

#include <algorithm>
#include <chrono>

namespace dlrun::runtime {

/// Pure: first after 30 s, in which a root that can be reached has let it in, then more and more
/// rarely.
class join_worries {
public:
  using time_point = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds first{30}, second{300}, longest{3600};

  explicit join_worries(time_point began)
      : began_{began} {}

  /// @returns whether it is to be said now
  bool is_due(time_point now) {
    if (now - began_ < after_) return false;
    const auto pause = std::clamp(after_, second, longest); // as long again
    after_ = std::chrono::duration_cast<std::chrono::seconds>(now - began_) + pause;
    return true;
  }
  std::chrono::seconds lasts(time_point now) const {
    return std::chrono::duration_cast<std::chrono::seconds>(now - began_);
  }

private:
  time_point began_;
  std::chrono::seconds after_ = first;
};

} // namespace dlrun::runtime
