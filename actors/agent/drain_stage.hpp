/// How far a host is on its way out of use (rule R37).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dlrun::agent {

enum class drain_stage : std::uint8_t {
  none,     ///< in use
  draining, ///< roles that start are to be elsewhere, and those that run there are moved
  drained   ///< nothing of the job needs it: it may be switched off
};

constexpr std::string_view to_string(drain_stage stage) {
  switch (stage) {
  case drain_stage::none: return "in use";
  case drain_stage::draining: return "draining";
  case drain_stage::drained: return "drained";
  }
  return "?";
}

/// What that means where no other host is in use for copies of PS shards.
inline std::string no_copies_while_drained(const std::string& host) {
  return "no copies while " + host + " is drained";
}

} // namespace dlrun::agent
