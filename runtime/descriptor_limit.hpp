/// Whether a process may open as many files as those of a run do.
#pragma once

#include "proto/job_spec.pb.h"

#include <dlrun/error.hpp>

namespace dlrun::runtime {

/// Call this before anything is made for a run: some libraries end the process when descriptors run
/// out.
/// @returns system, naming the limit (RLIMIT_NOFILE) and what the job needs.
result<void> check_descriptor_limit(const spec::JobSpec& spec);

} // namespace dlrun::runtime
