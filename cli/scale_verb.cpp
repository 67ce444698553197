#include "actors/agent/control_socket.hpp"
#include "cli/complain.hpp"
#include "cli/decimal.hpp"
#include "cli/verbs.hpp"
#include <dlrun/report.hpp>

#include <nlohmann/json.hpp>
#include <thread>

namespace dlrun::cli {
namespace {

/// Longer than the root waits for its coordinator.
constexpr auto answer_deadline = std::chrono::seconds(8);
constexpr auto count_period = std::chrono::milliseconds(50);

struct scale_options {
  std::string run_dir;
  std::uint64_t workers = 0;
  bool wait = false;
};

/// Nothing for a run that goes on, or may.
std::optional<error> why_over(const std::filesystem::path& run_dir) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(run_dir, ignored))
    return error{error_code::bad_usage, fmt::format("there is no run folder '{}'", run_dir.string())};
  if (std::filesystem::exists(run_dir / agent::agent_file, ignored)) return std::nullopt;
  const auto report = dlrun::read_report(run_dir / "report.json");
  if (!report) return std::nullopt;
  const auto way_out =
      report->status == run_status::completed
          ? std::string{"there is nothing left to compute"}
          : fmt::format("'dlrun resume {} --set cluster.workers=N' goes on with N workers", run_dir.string());
  return error{error_code::bad_usage,
               fmt::format("the run in '{}' is over ({} at step {}): {}", run_dir.string(),
                           to_string(report->status), report->steps, way_out)};
}

result<nlohmann::json> ask(const std::filesystem::path& run_dir, const std::string& request) {
  const auto answer = agent::ask_root(run_dir, request, answer_deadline);
  if (!answer) return tl::unexpected(answer.error());
  auto read = nlohmann::json::parse(*answer, nullptr, false);
  if (!read.is_object())
    return fail(error_code::protocol, fmt::format("the root of the run answers '{}'", *answer));
  return read;
}

/// Until as many have joined as are wanted, and none is leaving.
int wait_for_workers(const std::filesystem::path& run_dir) {
  for (;; std::this_thread::sleep_for(count_period)) {
    const auto status = ask(run_dir, "status");
    if (!status) return complain(status.error());
    if (status->value("status", "") != "running") {
      complain("the job ended meanwhile");
      return static_cast<int>(job::exit_code::job_failed);
    }
    const auto workers = status->value("workers", nlohmann::json::object());
    if (workers.value("present", 0) != workers.value("wanted", 1) || workers.value("leaving", 0) != 0)
      continue;
    say(stdout, "{} workers are there\n", workers.value("present", 0));
    return 0;
  }
}

int scale(const scale_options& options) {
  if (const auto over = why_over(options.run_dir)) return complain(*over);
  const auto answer = ask(options.run_dir, fmt::format("scale {}", options.workers));
  if (!answer) return complain(answer.error());
  if (answer->contains("error")) {
    complain(fmt::format("--workers {}: {}", options.workers, answer->value("error", "")));
    return answer->value("exit_code", static_cast<int>(job::exit_code::job_failed));
  }
  say(stdout, "{} workers are wanted; that is journaled\n", options.workers);
  return options.wait ? wait_for_workers(options.run_dir) : 0;
}

} // namespace

void add_scale(CLI::App& app, verb& chosen) {
  auto options = std::make_shared<scale_options>();
  auto* command = app.add_subcommand("scale", "Change the number of workers of a running job");
  command->add_option("DIR", options->run_dir, "Run folder, e.g. runs/fashion-mnist-cnn")->required();
  command
      ->add_option("--workers", options->workers,
                   "How many there shall be, from cluster.workers_min to cluster.workers_max")
      ->required()
      ->check(decimal());
  command->add_flag("--wait", options->wait,
                    "Wait until so many have joined and those that are too many have left");
  command->footer(
      "The parameters that come out are the same bits for any number of workers. What is asked for "
      "holds\nafter a restart of the coordinator too, and when the run is resumed, unless "
      "cluster.workers is changed then.");
  command->callback([options, &chosen] { chosen = [options] { return scale(*options); }; });
}

} // namespace dlrun::cli
