/// Which instructions of its processor a process computes with.
#pragma once

#include <dlrun/error.hpp>
#include <string>

namespace dlrun::engine {

/// Instruction set that this process computes with, e.g. "avx2".
std::string instruction_set();

/// From here on this process computes with the instruction set `level`, a word of
/// cluster.cpu_level, and with nothing wider; with "auto" or "" it may go on as it did. To be
/// called before anything computes or asks for the instruction set: what is asked once does not
/// change.
/// @returns bad_usage where the processor has it not, or the process computes with another one
result<void> hold_to_cpu_level(const std::string& level);

} // namespace dlrun::engine
