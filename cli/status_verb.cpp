#include "cli/complain.hpp"
#include "cli/root_request.hpp"
#include "cli/told_status.hpp"
#include "cli/verbs.hpp"
#include "job/run_layout.hpp"
#include "runtime/missing_stores.hpp"
#include <dlrun/report.hpp>

#include <nlohmann/json.hpp>

namespace dlrun::cli {
namespace {

struct status_options {
  std::string run_dir;
  bool json = false;
};

/// Status of a run that is over, in the form of a running one. Warns where its model is not whole.
result<std::string> status_from_report(const std::filesystem::path& run_dir) {
  const auto report = dlrun::read_report(run_dir / run_layout::report);
  if (!report) return tl::unexpected(report.error());
  if (const auto lacking = runtime::why_not_whole(run_dir, *report); !lacking.empty()) cli::warn(lacking);
  return nlohmann::ordered_json{{"job", report->job},
                                {"status", to_string(report->status)},
                                {"step", report->steps},
                                {"roles", nlohmann::ordered_json::array()}}
      .dump();
}

bool is_over(const std::filesystem::path& run_dir) {
  std::error_code ignored;
  return std::filesystem::exists(run_dir / run_layout::report, ignored) &&
         !std::filesystem::exists(run_dir / run_layout::agent, ignored);
}

int status(const status_options& options) {
  const std::filesystem::path run_dir{options.run_dir};
  auto answer = is_over(run_dir) ? status_from_report(run_dir) : ask_root(run_dir, "status");
  if (!answer && answer.error().code == error_code::bad_usage && is_over(run_dir)) // just now
    answer = status_from_report(run_dir);
  if (!answer) return complain(answer.error());
  if (options.json)
    say(stdout, "{}\n", *answer);
  else
    tell_status(nlohmann::ordered_json::parse(*answer));
  return 0;
}

} // namespace

void add_status(CLI::App& app, verb& chosen) {
  auto options = std::make_shared<status_options>();
  auto* command = app.add_subcommand("status", "Show how far a job is and what its roles do");
  command->add_option("DIR", options->run_dir, "Run folder, e.g. runs/fashion-mnist-cnn")->required();
  command->add_flag("--json", options->json, "One line of JSON");
  command->callback([options, &chosen] { chosen = [options] { return status(*options); }; });
}

} // namespace dlrun::cli
