/// wall_time: the time of people, for lines that they read.
#pragma once

#include <string>

namespace dlrun::base {

/// "2026-11-22T02:40:11.123Z": now, RFC 3339 in UTC with milliseconds, by the wall clock. Nothing
/// is decided by it.
std::string wall_time();

} // namespace dlrun::base
