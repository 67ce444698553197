/// How many hosts one job may have.
#pragma once

#include <cstdint>

namespace dlrun::base {

/// The root's included. On pods: names of hosts have room for a number of three digits.
inline constexpr std::uint32_t job_hosts_max = 1000;

} // namespace dlrun::base
