/// A run as the command line shows it.
#pragma once

#include "runtime/local_run.hpp"

namespace dlrun::cli {

/// Runs the job: shows progress, ends in order on SIGINT, SIGTERM (a second of these kills) and
/// SIGHUP. Blocks; takes over those of the process's signals that were not ignored. `json`: stdout
/// is for a program. That nobody reads stdout any more is no failure.
/// @returns the exit code, after the reason was printed where it is not success.
int run_displayed(const runtime::prepared_job& job, const runtime::local_run_options& options, bool json);

} // namespace dlrun::cli
