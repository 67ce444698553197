/// What a control pod leaves behind when its Job is suspended (rule R42).
#pragma once

#include <filesystem>
#include <string>

namespace dlrun::cli {

/// Once the run of the Job `job` was stopped. Nothing where the Job is not suspended, any more or
/// at all. Else the Job is told how far the run is, and the pods of its hosts are deleted, if the
/// run folder has all that they have. Takes 10 s at most; what is not done is said on stderr.
void end_suspended(const std::string& job, const std::filesystem::path& run_dir);

} // namespace dlrun::cli
