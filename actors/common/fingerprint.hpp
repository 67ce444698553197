/// What two hosts must have in common for their numbers to be the same bits (invariant I2).
#pragma once

#include "engine/fingerprint.hpp"

#include <string>
#include <vector>

namespace dlrun::common {

std::string dlrun_version();

/// The program and where it runs.
struct build_facts {
  std::string dlrun, onednn, compiler; ///< versions
  std::string cpu_model, instruction_set;
  std::vector<engine::fingerprint_part> parts; ///< all of them, the caches, and the threads of a worker
  std::string fingerprint;                     ///< of these one line; compared when a role joins
};

/// Of this process, on this host.
build_facts build_here(int threads_per_worker);

} // namespace dlrun::common
