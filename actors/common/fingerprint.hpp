/// What two hosts must have in common for their numbers to be the same bits (invariant I2).
#pragma once

#include <string>

namespace dlrun::common {

/// Processor model as the kernel names it, e.g. "AMD EPYC".
std::string cpu_model();
/// Instruction set that oneDNN uses here, e.g. "avx2".
std::string instruction_set();
std::string onednn_version();
std::string compiler_version();
std::string dlrun_version();

/// One line of all of the above and the threads of a worker. Compared when a role joins.
std::string host_fingerprint(int threads_per_worker);

} // namespace dlrun::common
