/// The one notion of time in decisions: monotonic, passed in as an argument, never read by a core.
#pragma once

#include <chrono>

namespace dlrun::protocol {

using duration = std::chrono::microseconds;
using time_point = std::chrono::time_point<std::chrono::steady_clock, duration>;

inline double to_seconds(duration time) { return std::chrono::duration<double>(time).count(); }
/// Of a number of the specification; what is less than a unit of `Duration` is cut off.
template <class Duration>
Duration from_seconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

} // namespace dlrun::protocol
