/// Runs a job on this machine: this process is its root and agent.
#pragma once

#include "cli/prepared_job.hpp"
#include "job/exit_code.hpp"

namespace dlrun::cli {

/// Starts the roles, shows progress, answers `dlrun status` and `dlrun stop`, ends in order on SIGINT and
/// SIGTERM (a second one kills), and waits for the end. Blocks; takes over SIGINT and SIGTERM of the process.
/// `coordinator`: what its first start is called; larger than any in the journal of the run folder. `json`:
/// stdout is for a program.
/// @returns the exit code of the run; an error when it could not be started.
result<job::exit_code> run_locally(const prepared_job& job, const std::filesystem::path& run_dir,
                                   incarnation coordinator, bool json);

/// Of a run that has no journal yet.
inline constexpr incarnation first_coordinator{1};

} // namespace dlrun::cli
