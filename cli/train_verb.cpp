#include "cli/complain.hpp"
#include "cli/local_run.hpp"
#include "cli/prepared_job.hpp"
#include "cli/verbs.hpp"
#include "job/spec_writer.hpp"

namespace dlrun::cli {
namespace {

struct train_options {
  std::string file;
  std::string run_dir;
  std::vector<std::string> overrides;
};

/// Creates the run folder with the specification as used. @returns bad_usage when there is a run in it
/// already.
result<std::filesystem::path> make_run_dir(const std::string& wanted, const spec::JobSpec& spec) {
  std::error_code why;
  const auto path = std::filesystem::absolute(
      wanted.empty() ? std::filesystem::path{"runs"} / spec.name() : std::filesystem::path{wanted}, why);
  if (std::filesystem::exists(path, why) && !std::filesystem::is_empty(path, why))
    return fail(
        error_code::bad_usage,
        fmt::format(
            "the run folder '{}' exists and is not empty: remove it, or choose another with --run-dir",
            path.string()));
  if (!std::filesystem::create_directories(path / "logs", why) && why)
    return fail(error_code::bad_usage,
                fmt::format("cannot create the run folder '{}': {}; choose another with --run-dir",
                            path.string(), why.message()));
  if (auto written = job::write_spec_file(path / "spec.yaml", spec); !written)
    return tl::unexpected(written.error());
  return path;
}

int train(const train_options& options) {
  auto job = prepare_job(options.file, options.overrides);
  if (!job) return complain(job.error());
  const auto run_dir = make_run_dir(options.run_dir, job->spec);
  if (!run_dir) return complain(run_dir.error());
  const auto code = run_locally(*job, *run_dir);
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
  command->footer(
      "Examples:\n"
      "  dlrun train examples/fashion_mnist/cnn.yaml\n"
      "  dlrun train job.yaml --run-dir /data/run7 --set train.optimizer.sgd.lr=0.1 --set cluster.workers=4\n"
      "Exit codes: 0 all data trained, 1 the job failed, 2 bad usage, specification or data, 130 "
      "interrupted.");
  command->callback([options, &chosen] { chosen = [options] { return train(*options); }; });
}

} // namespace dlrun::cli
