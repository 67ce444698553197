#include "cli/complain.hpp"
#include "cli/detached_root.hpp"
#include "cli/verbs.hpp"
#include "cli/warn_of_trained_on.hpp"
#include "runtime/hosts_run.hpp"
#include "runtime/new_run.hpp"

#include <nlohmann/json.hpp>

namespace dlrun::cli {
namespace {

struct train_options {
  std::string file;
  std::string run_dir;
  std::vector<std::string> overrides;
  std::string hosts;
  bool detach = false;
  bool json = false;
};

/// What `auto` became as the value of `section.key`, for people or, as an object of that type, for
/// a program.
void tell_auto(const char* type, const char* section, const char* key, const std::string& value,
               const std::string& reason, bool json) {
  if (json)
    say(stdout, "{}\n", nlohmann::ordered_json{{"type", type}, {key, value}, {"reason", reason}}.dump());
  else
    say(stdout, "{}.{}: auto is {}: {}\n", section, key, value, reason);
}

int train(const train_options& options, const begun_hook& begun) {
  const auto hosts = runtime::plan_hosts_if_named(options.hosts);
  if (!hosts) return complain(hosts.error());
  auto job = runtime::prepare_new_job(options.file, options.overrides);
  if (!job) return complain(job.error());
  if (*hosts)
    if (auto fits = runtime::check_for_hosts(*job); !fits) return complain(fits.error());
  warn_of_trained_on(*job);
  const auto run = runtime::begin_run(*job, options.run_dir);
  if (!run) return complain(run.error());
  if (run->device)
    tell_auto("device", "cluster", "device", run->device->device, run->device->reason, options.json);
  if (run->durability)
    tell_auto("durability", "durability", "log", run->durability->log, run->durability->reason, options.json);
  return run_displayed(*job, {.run_dir = run->folder.path(), .hosts = *hosts, .is_new = true},
                       {.json = options.json, .begun = begun});
}

int train_where_wanted(const train_options& options) {
  if (!options.detach) return train(options, {});
  return run_detached(options.json, [&](const begun_hook& begun) { return train(options, begun); });
}

} // namespace

void add_train(CLI::App& app, verb& chosen) {
  auto options = std::make_shared<train_options>();
  auto* command = app.add_subcommand(
      "train", "Train a model: starts everything, here or on several hosts, and waits for the end");
  command->add_option("FILE", options->file, "Job specification (YAML, see docs/spec.md)")->required();
  command->add_option("--run-dir", options->run_dir,
                      "Folder for everything the run writes (default: runs/<name>)");
  command
      ->add_option("--set", options->overrides,
                   "Override a value: path=value, e.g. train.epochs=3; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--hosts", options->hosts,
                      "Use the hosts that this file lists, see docs/hosts.md (default: this host alone)");
  command->add_flag("--detach", options->detach,
                    "Return when the job has begun; it keeps going without terminal, see 'attach'");
  command->add_flag("--json", options->json, "Progress, events and the report as JSON, one object a line");
  command->footer(
      "Examples:\n"
      "  dlrun train examples/fashion_mnist/cnn.yaml\n"
      "  dlrun train job.yaml --run-dir /data/run7 --set train.optimizer.sgd.lr=0.1 --set cluster.workers=4\n"
      "  dlrun train job.yaml --detach && dlrun attach runs/fashion-mnist-cnn\n"
      "Exit codes: 0 all data trained, 1 the job failed, 2 bad usage, specification or data, 3 records were "
      "left out,\n130 interrupted; with --detach 0 when the job has begun.");
  command->callback([options, &chosen] { chosen = [options] { return train_where_wanted(*options); }; });
}

} // namespace dlrun::cli
