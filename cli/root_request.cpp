#include "cli/root_request.hpp"

#include "actors/agent/control_socket.hpp"
#include "cli/complain.hpp"
#include <dlrun/report.hpp>

#include <chrono>

namespace dlrun::cli {
namespace {

/// Longer than the root waits for its coordinator.
constexpr auto answer_deadline = std::chrono::seconds(8);

} // namespace

std::optional<error> why_over(const std::filesystem::path& run_dir, const std::string& way_out) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(run_dir, ignored))
    return error{error_code::bad_usage, fmt::format("there is no run folder '{}'", run_dir.string())};
  if (std::filesystem::exists(run_dir / agent::agent_file, ignored)) return std::nullopt;
  const auto report = dlrun::read_report(run_dir / "report.json");
  if (!report) return std::nullopt;
  const bool is_complete = report->status == run_status::completed;
  return error{error_code::bad_usage,
               fmt::format("the run in '{}' is over ({} at step {}): {}", run_dir.string(),
                           to_string(report->status), report->steps,
                           is_complete ? "there is nothing left to compute" : way_out)};
}

result<nlohmann::json> request_of_root(const std::filesystem::path& run_dir, const std::string& request) {
  const auto answer = agent::ask_root(run_dir, request, answer_deadline);
  if (!answer) return tl::unexpected(answer.error());
  auto read = nlohmann::json::parse(*answer, nullptr, false);
  if (!read.is_object())
    return fail(error_code::protocol, fmt::format("the root of the run answers '{}'", *answer));
  return read;
}

int complain_of_answer(const nlohmann::json& answer, const std::string& about) {
  complain(about + answer.value("error", ""));
  return answer.value("exit_code", static_cast<int>(job::exit_code::job_failed));
}

} // namespace dlrun::cli
