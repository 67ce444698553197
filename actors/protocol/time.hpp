/// The one notion of time in decisions: monotonic, passed in as an argument, never read by a core.
#pragma once

#include <chrono>

namespace dlrun::protocol {

using duration = std::chrono::microseconds;
using time_point = std::chrono::time_point<std::chrono::steady_clock, duration>;

inline double to_seconds(duration time) { return std::chrono::duration<double>(time).count(); }

} // namespace dlrun::protocol
