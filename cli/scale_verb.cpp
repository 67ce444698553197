#include "cli/complain.hpp"
#include "cli/decimal.hpp"
#include "cli/root_request.hpp"
#include "cli/verbs.hpp"

#include <thread>

namespace dlrun::cli {
namespace {

constexpr auto count_period = std::chrono::milliseconds(50);

struct scale_options {
  std::string run_dir;
  std::uint64_t workers = 0;
  bool wait = false;
};

/// Until as many have joined as are wanted, and none is leaving.
int wait_for_workers(const std::filesystem::path& run_dir) {
  for (;; std::this_thread::sleep_for(count_period)) {
    const auto status = request_of_root(run_dir, "status");
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
  const auto way_out =
      fmt::format("'dlrun resume {} --set cluster.workers=N' goes on with N workers", options.run_dir);
  if (const auto over = why_over(options.run_dir, way_out)) return complain(*over);
  const auto answer = request_of_root(options.run_dir, fmt::format("scale {}", options.workers));
  if (!answer) return complain(answer.error());
  if (answer->contains("error"))
    return complain_of_answer(*answer, fmt::format("--workers {}: ", options.workers));
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
