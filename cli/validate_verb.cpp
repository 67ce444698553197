#include "cli/complain.hpp"
#include "cli/verbs.hpp"
#include "cli/warn_of_trained_on.hpp"
#include "runtime/prepared_job.hpp"

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace dlrun::cli {
namespace {

struct validate_options {
  std::string file;
  std::vector<std::string> overrides;
  bool json = false;
};

void print_json(const runtime::prepared_job& job) {
  say(stdout, "{}\n",
      nlohmann::ordered_json{{"valid", true},
                             {"name", job.spec.name()},
                             {"parameters", job.parameter_count},
                             {"train_records", job.train_records},
                             {"validation_records", job.validation_records},
                             {"validation_records_trained_on", job.validation_records_trained_on},
                             {"epochs", job.spec.train().epochs()},
                             {"steps", job.steps}}
          .dump());
}

/// Each problem is a line of the message (job/problems.hpp).
int complain_json(const error& what) {
  std::vector<std::string> problems;
  std::istringstream lines(what.message);
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) problems.push_back(line);
  say(stdout, "{}\n",
      nlohmann::ordered_json{{"valid", false}, {"problems", problems}}.dump(
          -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  return static_cast<int>(job::exit_code_for(what.code));
}

int validate(const validate_options& options) {
  const auto job = runtime::prepare_new_job(options.file, options.overrides);
  if (!job) return options.json ? complain_json(job.error()) : complain(job.error());
  warn_of_trained_on(*job);
  if (options.json) {
    print_json(*job);
    return 0;
  }
  say(stdout, "'{}' is valid: {} parameters, {} training and {} validation records, {} steps in {} epochs\n",
      options.file, job->parameter_count, job->train_records, job->validation_records, job->steps,
      job->spec.train().epochs());
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
  command->add_flag("--json", options->json, "One line of JSON, on stdout also when it is not valid");
  command->callback([options, &chosen] { chosen = [options] { return validate(*options); }; });
}

} // namespace dlrun::cli
