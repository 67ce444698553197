/// What the bits of a processor's arithmetic depend on.
#pragma once

#include <string>

namespace dlrun::engine {

/// Processor model as the kernel names it, e.g. "AMD EPYC".
std::string cpu_model();
/// Instruction set that oneDNN uses here, e.g. "avx2".
std::string instruction_set();
std::string onednn_version();
std::string compiler_version();

/// One line of all of the above and the threads of a microbatch.
std::string processor_fingerprint(int threads);

} // namespace dlrun::engine
