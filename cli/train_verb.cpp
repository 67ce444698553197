#include "cli/complain.hpp"
#include "cli/durability_choice.hpp"
#include "cli/local_run.hpp"
#include "cli/prepared_job.hpp"
#include "cli/run_folder.hpp"
#include "cli/verbs.hpp"
#include "job/spec_writer.hpp"

#include <nlohmann/json.hpp>

namespace dlrun::cli {
namespace {

struct train_options {
  std::string file;
  std::string run_dir;
  std::vector<std::string> overrides;
  bool json = false;
};

/// Decides what `durability.log: auto` is for this run, and keeps the decision in the folder.
result<void> settle_durability(prepared_job& job, const run_folder& folder, bool json) {
  if (job.spec.durability().log() != "auto") return {};
  const auto choice = measure_durability(job, folder.path());
  if (!choice) return tl::unexpected(choice.error());
  job.spec.mutable_durability()->set_log(choice->log);
  if (json)
    say(stdout, "{}\n",
        nlohmann::ordered_json{{"type", "durability"}, {"log", choice->log}, {"reason", choice->reason}}
            .dump());
  else
    say(stdout, "durability.log: auto is {}: {}\n", choice->log, choice->reason);
  return job::write_spec_file(folder.spec_file(), job.spec);
}

int train(const train_options& options) {
  auto job = prepare_job(options.file, options.overrides);
  if (!job) return complain(job.error());
  if (job->spec.train().skip_size() > 0 || job->spec.train().has_from())
    return complain({error_code::bad_spec,
                     "train.skip and train.from are for a run that is resumed: 'dlrun resume DIR --skip "
                     "STEP:SLOT' and '--from STEP' write them"});
  const auto folder = run_folder::create(options.run_dir, job->spec);
  if (!folder) return complain(folder.error());
  if (const auto settled = settle_durability(*job, *folder, options.json); !settled)
    return complain(settled.error());
  const auto code = run_locally(*job, folder->path(), first_coordinator, options.json);
  if (!code) return complain(code.error());
  return static_cast<int>(*code);
}

} // namespace

void add_train(CLI::App& app, verb& chosen) {
  auto options = std::make_shared<train_options>();
  auto* command = app.add_subcommand(
      "train", "Train a model: starts everything as local processes and waits for the end");
  command->add_option("FILE", options->file, "Job specification (YAML, see docs/spec.md)")->required();
  command->add_option("--run-dir", options->run_dir,
                      "Folder for everything the run writes (default: runs/<name>)");
  command
      ->add_option("--set", options->overrides,
                   "Override a value: path=value, e.g. train.epochs=3; may be repeated")
      ->allow_extra_args(false);
  command->add_flag("--json", options->json, "Progress, events and the report as JSON, one object a line");
  command->footer(
      "Examples:\n"
      "  dlrun train examples/fashion_mnist/cnn.yaml\n"
      "  dlrun train job.yaml --run-dir /data/run7 --set train.optimizer.sgd.lr=0.1 --set cluster.workers=4\n"
      "Exit codes: 0 all data trained, 1 the job failed, 2 bad usage, specification or data, 130 "
      "interrupted.");
  command->callback([options, &chosen] { chosen = [options] { return train(*options); }; });
}

} // namespace dlrun::cli
