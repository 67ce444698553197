/// Between the agent and the agents of other hosts: the logs of roles, while the job runs and when
/// it has ended. Each answer is for one request and changes nothing, so that any may be asked
/// again. A log is named by its role alone: the host that has it knows where it is.
#pragma once

#include "actors/protocol/roles.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace dlrun::protocol {

/// Agent -> host agent: of which roles are there logs?
struct log_listing_wanted {
  template <class Inspector>
  friend auto inspect(Inspector& f, log_listing_wanted&) {
    return f();
  }
};

struct kept_log {
  role_name role;
  std::uint64_t bytes = 0; ///< so far

  bool operator==(const kept_log&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, kept_log& x) {
    return f(x.role, x.bytes);
  }
};

struct log_listing {
  std::string failure; ///< why there is none; else empty
  std::vector<kept_log> logs;

  template <class Inspector>
  friend auto inspect(Inspector& f, log_listing& x) {
    return f(x.failure, x.logs);
  }
};
/// A message has room for so many, and for what is around them.
inline constexpr std::size_t kept_logs_max = 4096;

/// Agent -> host agent: bytes of one of them.
struct log_part_wanted {
  role_name role;
  std::uint64_t offset = 0;
  std::uint32_t size = 0; ///< at most log_part_bytes_max

  bool operator==(const log_part_wanted&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, log_part_wanted& x) {
    return f(x.role, x.offset, x.size);
  }
};

/// Fewer bytes than were wanted: the log ends there, for now.
struct log_part {
  std::string failure; ///< why there is none; else empty
  std::string bytes;

  template <class Inspector>
  friend auto inspect(Inspector& f, log_part& x) {
    return f(x.failure, x.bytes);
  }
};
/// Half of what a message has room for.
inline constexpr std::uint32_t log_part_bytes_max = std::uint32_t{32} << 10;

} // namespace dlrun::protocol
