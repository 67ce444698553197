/// Requests of the root of a running job, and of those the ones that are answered in JSON.
#pragma once

#include "runtime/answer_deadlines.hpp"

#include <chrono>
#include <dlrun/error.hpp>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace dlrun::cli {

/// As agent::exchange_with_root(). A root that is gone is told with the command that goes on with
/// the run.
result<std::string> ask_root(const std::filesystem::path& run_dir, const std::string& request,
                             std::chrono::milliseconds deadline = runtime::root_answer_deadline);
/// Nothing for a run that goes on, or may. Else bad_usage: how it ended, with `way_out` where it
/// can be resumed.
std::optional<error> why_over(const std::filesystem::path& run_dir, const std::string& way_out);
/// @returns the object that the root answers, which may be an `error` with an `exit_code`; or an
/// error as ask_root() does, protocol for what is no object.
result<nlohmann::json> request_of_root(const std::filesystem::path& run_dir, const std::string& request);
/// Shows `look` the status of the run each `period`, until it has an exit code.
/// @returns that; or job_failed, with a complaint, once the job has ended, or whatever fits why its
/// root does not answer
int watch_status(const std::filesystem::path& run_dir, std::chrono::milliseconds period,
                 const std::function<std::optional<int>(const nlohmann::json& status)>& look);
/// Complains that what was waited for will not come. @returns job_failed
int fail_wait(const std::string& why);
/// Complains of the `error` in an answer. @returns its exit code.
int complain_of_answer(const nlohmann::json& answer, const std::string& about);

} // namespace dlrun::cli
