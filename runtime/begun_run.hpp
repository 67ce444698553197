/// The run that `dlrun train --or-resume` finds where its own is to be.
#pragma once

#include "proto/job_spec.pb.h"

#include <dlrun/report.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::runtime {

/// A run of the job that is asked for.
struct begun_run {
  std::filesystem::path folder{};
  /// "path=value": what the job file says otherwise than the last time, and changes no bit.
  std::vector<std::string> changes{};
  /// How it ended, if it has failed: nobody goes on with that unasked. One that was stopped has not
  /// ended, and of one that is completed prepare_resumption() tells.
  std::optional<report> failed{};
};

/// Looks into the folder `wanted` (default: runs/<name of the job>) for a run of the job `asked`:
/// what its file says, with the overrides. Changes nothing.
/// @param has_hosts the job is to run on several hosts
/// @returns nothing where no run is, or one that was killed before it was one; bad_usage, naming
/// what differs and the way out, for the run of another job, one that a process is using, one that
/// had hosts and is to have none, a job that keeps nothing to go on with, and for a folder with
/// something else in it.
result<std::optional<begun_run>> find_begun_run(const spec::JobSpec& asked, const std::string& wanted,
                                                bool has_hosts);

} // namespace dlrun::runtime
