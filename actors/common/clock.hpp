/// The one place where actors read a clock. Cores get the time as an argument.
#pragma once

#include "actors/protocol/time.hpp"

#include <cstdint>

namespace dlrun::common {

/// CLOCK_MONOTONIC: the same for all processes of a host, so events of different roles can be
/// compared.
inline protocol::time_point now() {
  return std::chrono::time_point_cast<protocol::duration>(std::chrono::steady_clock::now());
}

inline std::uint64_t to_us(protocol::time_point time) {
  return static_cast<std::uint64_t>(time.time_since_epoch().count());
}

} // namespace dlrun::common
