#include "cli/root_request.hpp"

#include "actors/agent/control_socket.hpp"
#include "cli/complain.hpp"
#include "job/run_layout.hpp"
#include "runtime/missing_stores.hpp"
#include "runtime/run_folder.hpp"
#include "runtime/run_record.hpp"
#include <dlrun/report.hpp>

#include <thread>
#include <utility>

namespace dlrun::cli {
namespace {

constexpr const char* ended_meanwhile = "the job ended meanwhile";

/// Nobody can be asked: a root prepares the run, or it has ended without a report; "" otherwise.
std::string why_nobody(const std::filesystem::path& run_dir) {
  std::error_code ignored;
  const bool is_over = std::filesystem::exists(run_dir / run_layout::report, ignored);
  const bool can_be_asked = std::filesystem::exists(run_dir / run_layout::agent, ignored);
  if (is_over || can_be_asked) return "";
  if (auto unready = runtime::tell_unready_root(run_dir); !unready.empty()) return unready;
  if (!std::filesystem::exists(run_dir / run_layout::record, ignored)) return "";
  return fmt::format(
      "the run in '{}' is not running, and ended without a report: '{}' goes on from what is on disk",
      run_dir.string(), runtime::resume_command(run_dir));
}

} // namespace

result<std::string> ask_root(const std::filesystem::path& run_dir, const std::string& request,
                             std::chrono::milliseconds deadline) {
  auto answer = agent::exchange_with_root(run_dir, request, deadline);
  if (!answer && answer.error().code == error_code::bad_usage)
    if (auto why = why_nobody(run_dir); !why.empty()) return fail(error_code::bad_usage, std::move(why));
  if (answer || answer.error().code != error_code::role_lost) return answer;
  if (auto deaf = runtime::tell_root_without_socket(run_dir); !deaf.empty())
    return fail(error_code::role_lost, std::move(deaf));
  return fail(error_code::role_lost,
              fmt::format("{}; '{}' goes on from what is on disk{}", answer.error().message,
                          runtime::resume_command(run_dir),
                          runtime::needs_hosts(run_dir) ? ", and with what runs on other hosts still" : ""));
}

std::optional<error> why_over(const std::filesystem::path& run_dir, const std::string& way_out) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(run_dir, ignored))
    return error{error_code::bad_usage, fmt::format("there is no run folder '{}'", run_dir.string())};
  if (std::filesystem::exists(run_dir / run_layout::agent, ignored)) return std::nullopt;
  const auto report = dlrun::read_report(run_dir / run_layout::report);
  if (!report) return std::nullopt;
  const bool is_complete = report->status == run_status::completed;
  if (auto lacking = runtime::why_not_whole(run_dir, *report); !lacking.empty())
    return error{error_code::bad_usage, std::move(lacking)};
  return error{error_code::bad_usage,
               fmt::format("the run in '{}' is over ({} at step {}): {}", run_dir.string(),
                           to_string(report->status), report->steps,
                           is_complete ? "there is nothing left to compute" : way_out)};
}

result<nlohmann::json> request_of_root(const std::filesystem::path& run_dir, const std::string& request) {
  const auto answer = ask_root(run_dir, request);
  if (!answer) return tl::unexpected(answer.error());
  auto read = nlohmann::json::parse(*answer, nullptr, false);
  if (!read.is_object())
    return fail(error_code::protocol, fmt::format("the root of the run answers '{}'", *answer));
  return read;
}

int fail_wait(const std::string& why) {
  complain(why);
  return static_cast<int>(job::exit_code::job_failed);
}

int watch_status(const std::filesystem::path& run_dir, std::chrono::milliseconds period,
                 const std::function<std::optional<int>(const nlohmann::json& status)>& look) {
  bool was_lost = false;
  for (;; std::this_thread::sleep_for(period)) {
    const auto status = request_of_root(run_dir, "status");
    if (!status) {
      if (status.error().code == error_code::bad_usage) return fail_wait(ended_meanwhile);
      // It may have been asked just when it ended, and the run folder does not say so yet.
      if (status.error().code == error_code::role_lost && !std::exchange(was_lost, true)) continue;
      return complain(status.error());
    }
    if (status->value("status", "") != "running") return fail_wait(ended_meanwhile);
    if (const auto code = look(*status)) return *code;
  }
}

int complain_of_answer(const nlohmann::json& answer, const std::string& about) {
  complain(about + answer.value("error", ""));
  return answer.value("exit_code", static_cast<int>(job::exit_code::job_failed));
}

} // namespace dlrun::cli
