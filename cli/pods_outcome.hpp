/// How a job has ended, told to Kubernetes by its control pod.
#pragma once

#include "cli/verb_end.hpp"
#include "kubernetes/job_outcome.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace dlrun::cli {

/// The run of a job that has ended.
struct ended_run {
  bool is_elsewhere = false; ///< another process has its folder, or is its root (R40)
  bool was_begun = false;    ///< it has trained, or was about to, now or before
};

/// What is told of it; nothing of a job that was stopped and may go on, or whose run another
/// process has, which tells how that ends.
///
/// Final is what the report of the run says, and wrong input: another start changes nothing of
/// that. An error without a report is of this start: no port, say, or a store on a host that did
/// not come. So is data that cannot be read any more, which was there when the run began.
std::optional<kubernetes::job_outcome> outcome_of(const verb_end& ended, const ended_run& run);

/// Tells it where a container of the Job `job` may: the file of its last words, the register by
/// which it is the root (R43), and the API server, for 10 s at most. What cannot be told is said on
/// stderr, and changes nothing else.
void tell_kubernetes(const verb_end& ended, const std::string& job, const std::filesystem::path& run_dir);

/// That alone which the register holds: the job is complete, and nothing of it is needed any more.
/// @param home by which this process is the root; null: by none
void note_completed(const dlrun::report& report, std::shared_ptr<runtime::root_home> home);

/// The API server alone, of an end that another control pod came to.
void tell_end(const kubernetes::job_outcome& outcome, const std::string& job);

} // namespace dlrun::cli
