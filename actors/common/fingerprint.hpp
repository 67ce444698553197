/// What two hosts must have in common for their numbers to be the same bits (invariant I2).
#pragma once

#include "engine/fingerprint.hpp"

#include <string>
#include <vector>

namespace dlrun::common {

std::string dlrun_version();

/// The version, `+`, and 12 digits of a digest of the program's sources and of how they were
/// compiled (scripts/name_build): all processes of a job have the same.
std::string dlrun_build();

/// The program and where it runs.
struct build_facts {
  std::string dlrun, onednn, compiler; ///< versions
  std::string cpu_model, instruction_set;
  /// All of them, the caches, and the threads of a worker: what a run keeps, for those who resume
  /// it.
  std::vector<engine::fingerprint_part> parts;
  /// Of these one line, with dlrun_build(); compared when a role joins.
  std::string fingerprint;
};

/// Of this process, on this host.
build_facts build_here(int threads_per_worker);

} // namespace dlrun::common
