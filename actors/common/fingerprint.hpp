/// What two hosts must have in common for their numbers to be the same bits (invariant I2).
#pragma once

#include <string>

namespace dlrun::common {

std::string dlrun_version();

/// The program and where it runs.
struct build_facts {
  std::string dlrun, onednn, compiler; ///< versions
  std::string cpu_model, instruction_set;
  std::string
      fingerprint; ///< one line of all of them and the threads of a worker; compared when a role joins
};

/// Of this process, on this host.
build_facts build_here(int threads_per_worker);

} // namespace dlrun::common
