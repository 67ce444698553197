/// The run that `dlrun train --or-resume` finds where its own is to be.
#pragma once

#include "proto/job_spec.pb.h"

#include <cstdint>
#include <dlrun/report.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::runtime {

/// A run that was found, of the job that the user asks for.
struct begun_run {
  std::filesystem::path folder{};
  /// "path=value": keys that the job file has changed since the last time, and that change no bit.
  std::vector<std::string> changes{};
  /// Its report, if it has failed: such a run is resumed only when the user asks. A stopped run has
  /// not ended; prepare_resumption() recognises a completed one.
  std::optional<report> failed{};
};

/// Looks into the folder `wanted` (default: runs/<name of the job>) for a run of the job `asked`,
/// which is the job file with its overrides; where it has none, and its journal is in an etcd,
/// there (R40). Changes nothing, but makes the folder of a run that is only there.
/// @param has_hosts the job is to run on several hosts
/// @returns nothing when there is no run, or one that was killed while it began; bad_usage, naming
/// what differs and the way out, for the run of another job, one that a process uses, one that had
/// other hosts and is to have none, a job that stores nothing to resume from, and a folder with
/// something else in it.
result<std::optional<begun_run>> find_begun_run(const spec::JobSpec& asked, const std::string& wanted,
                                                bool has_hosts);

/// R45. Where the folder has no run, makes it of the newest whole archive in `archives`, if that is
/// of the job that is asked for. @returns what people are told of that; nothing when there is a
/// run, or no archive; errors as find_begun_run() and find_whole_archive().
result<std::optional<std::string>> begin_from_archive(const spec::JobSpec& asked, const std::string& wanted,
                                                      const std::filesystem::path& archives);

/// Whether the etcd has a run of a job.
enum class run_in_etcd : std::uint8_t {
  begun,     ///< there is one
  not_begun, ///< there is none, or the journal of the job is in no etcd
  unknown,   ///< the etcd does not answer: nobody can tell
};

/// Where find_begun_run() found none, or failed: whether the etcd has a run of this job by now
/// (R40).
run_in_etcd look_into_etcd(const spec::JobSpec& asked);

} // namespace dlrun::runtime
