/// The one notion of time in decisions: monotonic, passed in as an argument, never read by a core.
#pragma once

#include <chrono>

namespace dlrun::protocol {

using duration = std::chrono::microseconds;
using time_point = std::chrono::time_point<std::chrono::steady_clock, duration>;

} // namespace dlrun::protocol
