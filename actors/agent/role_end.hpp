/// What a launcher sees of the roles that it started.
#pragma once

#include "actors/agent/gpu_choice.hpp"
#include "actors/protocol/parking.hpp"
#include "actors/protocol/roles.hpp"

#include <optional>
#include <string>

namespace dlrun::agent {

/// What a worker was seen to compute.
struct seen_work {
  protocol::role_name role;
  protocol::fence self;
  std::uint64_t sequence = 0;                  ///< changes when it begins with something or ends it
  std::optional<protocol::slot_progress> at{}; ///< nothing: no slot
};

struct role_end {
  std::string cause; ///< for people
  /// Another start of it would end in the same way: a library of its program is missing, an
  /// argument is wrong.
  bool is_lasting = false;
  /// It ended by itself, with an exit code or, as an actor of this process, with a reason. False:
  /// it was killed, or lost with its host.
  bool exited = false;
  /// The slot that a worker was at, if its end was its own doing in the middle of it (R18).
  std::optional<protocol::slot_progress> slot{};
  /// The slot that a worker was at when its launcher was told to kill it. Nothing: it was at none,
  /// it was stopped from outside (SIGSTOP, a debugger), or nobody told the launcher to.
  std::optional<protocol::slot_progress> killed_in{};
  /// Another role was lost with the same host: the loss of a host is one failure, however many
  /// roles it ran, and uses one restart of the budget.
  bool is_one_of_several = false;
  bool left = false; ///< a worker that had a SIGTERM, from whomever, and ended by it (R33)
  /// A worker's GPU that failed, and gets no more workers from now on.
  std::optional<avoided_gpu> avoided{};
};

} // namespace dlrun::agent
