#include "cli/complain.hpp"
#include "cli/prepared_job.hpp"
#include "cli/verbs.hpp"

namespace dlrun::cli {
namespace {

struct validate_options {
  std::string file;
  std::vector<std::string> overrides;
};

int validate(const validate_options& options) {
  const auto job = prepare_job(options.file, options.overrides);
  if (!job) return complain(job.error());
  fmt::print("'{}' is valid: {} parameters, {} training records, {} steps in {} epochs\n", options.file,
             job->parameter_count, job->train_records, job->steps, job->spec.train().epochs());
  return 0;
}

} // namespace

void add_validate(CLI::App& app, verb& chosen) {
  auto options = std::make_shared<validate_options>();
  auto* command =
      app.add_subcommand("validate", "Check a job specification and the data it names, without training");
  command->add_option("FILE", options->file, "Job specification (YAML, see docs/spec.md)")->required();
  command->add_option("--set", options->overrides, "Override a value: path=value, e.g. train.epochs=3")
      ->allow_extra_args(false);
  command->callback([options, &chosen] { chosen = [options] { return validate(*options); }; });
}

} // namespace dlrun::cli
