/// A run as the command line shows it.
#pragma once

#include "runtime/local_run.hpp"

namespace dlrun::cli {

/// Runs the job: shows progress, ends in order on SIGINT and SIGTERM (a second one kills). Blocks; takes over
/// both signals of the process. `json`: stdout is for a program.
/// @returns the exit code, after the reason was printed where it is not success.
int run_displayed(const runtime::prepared_job& job, const runtime::local_run_options& options, bool json);

} // namespace dlrun::cli
