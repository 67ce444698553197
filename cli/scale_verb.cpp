#include "cli/complain.hpp"
#include "cli/root_request.hpp"
#include "cli/verbs.hpp"
#include "cli/whole_number.hpp"
#include "runtime/run_record.hpp"

#include <chrono>
#include <optional>

namespace dlrun::cli {
namespace {

constexpr auto count_period = std::chrono::milliseconds(50);

struct scale_options {
  std::string run_dir;
  std::uint64_t workers = 0;
  std::optional<std::uint64_t> hosts{}; ///< of a job on pods, which run_on_pods() scales
  bool wait = false;
};

/// Until as many have joined as were asked for, and none is leaving.
int wait_for_workers(const scale_options& options) {
  const auto look = [&](const nlohmann::json& status) -> std::optional<int> {
    const auto workers = status.value("workers", nlohmann::json::object());
    const auto wanted = workers.value("wanted", options.workers);
    if (wanted != options.workers)
      return fail_wait(
          fmt::format("{} workers are wanted by now: somebody asked for another number", wanted));
    if (workers.value("present", std::uint64_t{0}) != wanted || workers.value("leaving", 0) != 0)
      return std::nullopt;
    say(stdout, "{} workers are there\n", wanted);
    return 0;
  };
  return watch_status(options.run_dir, count_period, look);
}

int scale(const scale_options& options) {
  if (options.hosts)
    return complain(
        {error_code::bad_usage,
         fmt::format(
             "--hosts {}: only pods are made when they are wanted (k8s://NAMESPACE/JOB); another host "
             "joins by a token or a key, and is moved off by 'dlrun drain'",
             *options.hosts)});
  const auto way_out = fmt::format("'{} --set cluster.workers=N' goes on with N workers",
                                   runtime::resume_command(options.run_dir));
  if (const auto over = why_over(options.run_dir, way_out)) return complain(*over);
  const auto answer = request_of_root(options.run_dir, fmt::format("scale {}", options.workers));
  if (!answer) return complain(answer.error());
  if (answer->contains("error"))
    return complain_of_answer(*answer, fmt::format("--workers {}: ", options.workers));
  say(stdout, "{} workers are wanted; that is journaled\n", options.workers);
  return options.wait ? wait_for_workers(options) : 0;
}

} // namespace

void add_scale(CLI::App& app, verb& chosen) {
  auto options = std::make_shared<scale_options>();
  auto* command = app.add_subcommand("scale", "Change the number of workers of a running job");
  command->add_option("DIR", options->run_dir, "Run folder, e.g. runs/fashion-mnist-cnn")->required();
  auto* workers = command
                      ->add_option("--workers", options->workers,
                                   "How many there shall be, from cluster.workers_min to cluster.workers_max")
                      ->check(whole_number());
  auto* hosts = command
                    ->add_option("--hosts", options->hosts,
                                 "Of a job on pods: how many pods beside the control pod, up to the "
                                 "--hosts-max that it was submitted with")
                    ->check(whole_number())
                    ->excludes(workers);
  command
      ->add_flag("--wait", options->wait,
                 "Wait until so many have joined and those that are too many have left")
      ->needs(workers);
  command->footer(
      "The parameters that come out are the same bits for any number of workers. What is asked for "
      "holds\nafter a restart of the coordinator too, and when the run is resumed, unless "
      "cluster.workers is changed then.");
  command->callback([options, workers, hosts, &chosen] {
    if (workers->empty() && hosts->empty())
      throw CLI::RequiredError("--workers, or --hosts of a job on pods,");
    chosen = [options] { return scale(*options); };
  });
}

} // namespace dlrun::cli
