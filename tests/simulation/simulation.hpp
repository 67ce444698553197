/// Runs one seed: a whole job on a whole cluster, in one thread and in virtual time.
#pragma once

#include "actors/protocol/planted_bug.hpp"

#include <cstdint>
#include <ostream>
#include <string>

namespace dlrun::simulation {

struct run_options {
  std::uint64_t seed = 0;
  protocol::planted_bug bug = protocol::planted_bug::none; ///< needs a build with DLRUN_PLANTED_BUGS
  std::ostream* trace = nullptr;
  bool hosts = false; ///< several
};

struct run_outcome {
  std::string broken; ///< the invariant that does not hold and how; empty if all do
  std::uint64_t events = 0;
  std::uint64_t faults = 0;
  bool ps_shard_restarted = false;
  std::uint64_t rewinds = 0;
  std::uint64_t steps_redone = 0;
};

/// Same seed, same run, event by event.
run_outcome run_seed(const run_options& options);

} // namespace dlrun::simulation
