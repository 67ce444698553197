/// How the number of workers changes while a job runs (rules R32, R33). The rules of messages.hpp
/// hold.
#pragma once

#include <cstdint>
#include <string>

namespace dlrun::protocol {

/// Root -> agent, within its process: the operator wants so many workers.
struct scale_request {
  std::uint32_t workers = 0;

  template <class Inspector>
  friend auto inspect(Inspector& f, scale_request& x) {
    return f(x.workers);
  }
};
/// The answer, once the number is journaled or refused.
struct scale_reply {
  bool accepted = false;
  std::string reason; ///< why it was refused

  template <class Inspector>
  friend auto inspect(Inspector& f, scale_reply& x) {
    return f(x.accepted, x.reason);
  }
};

/// Agent -> coordinator: so many workers are wanted. Repeated until the coordinator that is up has
/// said `workers_wanted` of this request or a later one; idempotent.
struct scale_job {
  std::uint64_t agent = 0;   ///< random number of the agent's process
  std::uint64_t request = 0; ///< number of the request there: 1, 2, ...
  std::uint32_t workers = 0;

  template <class Inspector>
  friend auto inspect(Inspector& f, scale_job& x) {
    return f(x.agent, x.request, x.workers);
  }
};

/// Coordinator -> agent and dispatcher, from state, again and again: the number of workers that is
/// journaled. Of two words of an agent that of the later request holds.
struct workers_wanted {
  std::uint64_t agent = 0;   ///< whom it is for
  std::uint64_t request = 0; ///< its request that this answers; 0: none yet
  std::uint32_t workers = 0;

  bool operator==(const workers_wanted&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, workers_wanted& x) {
    return f(x.agent, x.request, x.workers);
  }
};

/// A worker's process -> its worker: leave (R33).
struct leave_job {
  template <class Inspector>
  friend auto inspect(Inspector& f, leave_job&) {
    return f();
  }
};

} // namespace dlrun::protocol
