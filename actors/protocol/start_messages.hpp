/// Starts of roles, between agent and coordinator: what may be started, was started, and is over.
#pragma once

#include "actors/protocol/parking.hpp"
#include "actors/protocol/roles.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace dlrun::protocol {

/// Coordinator -> agent: the fences that `role` may be started with, oldest first. The agent keeps
/// the ones it has not used, so it can restart a role while the coordinator is away. Idempotent:
/// fences it knows are ignored.
struct grant {
  role_name role;
  std::vector<fence> fences;
  std::uint64_t agent = 0; ///< random number of the process they are for: another one must not use them

  template <class Inspector>
  friend auto inspect(Inspector& f, grant& x) {
    return f(x.role, x.fences, x.agent);
  }
};

/// Coordinator -> agent: the start `self` of `role` takes part no more, since it was told once that
/// it is over (R35). If it runs all the same it is to be killed. Idempotent.
struct start_over {
  role_name role;
  fence self;

  template <class Inspector>
  friend auto inspect(Inspector& f, start_over& x) {
    return f(x.role, x.self);
  }
};

/// Agent -> coordinator: `role` was started with `self` (and that fence is used up).
struct role_started {
  role_name role;
  fence self;
  std::int32_t pid = 0;

  template <class Inspector>
  friend auto inspect(Inspector& f, role_started& x) {
    return f(x.role, x.self, x.pid);
  }
};

/// Agent -> coordinator: the start `self` of `role` is over.
struct role_exited {
  role_name role;
  fence self;
  std::string cause;             ///< e.g. "killed by signal 9 (SIGKILL)"
  std::uint64_t detected_us = 0; ///< from its last sign of life to the notice of its end, microseconds
  bool replaced = false;         ///< a new start follows
  bool has_progress = false; ///< a worker that ended by its own doing (a crash, no kill) in mid-computation:
  slot_progress progress{};  ///< where it was (R18)
  std::uint64_t age_us = 0;  ///< from the notice to this message, microseconds: hosts share no clock
  bool again = false; ///< told before, to an earlier coordinator or over a connection that broke: for the
                      ///< report alone, unless it is news
  bool left = false;  ///< a worker that was asked to leave (R33): no loss

  template <class Inspector>
  friend auto inspect(Inspector& f, role_exited& x) {
    return f(x.role, x.self, x.cause, x.detected_us, x.replaced, x.has_progress, x.progress, x.age_us,
             x.again, x.left);
  }
};

} // namespace dlrun::protocol
