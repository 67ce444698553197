#include "cli/complain.hpp"
#include "cli/model_options.hpp"
#include "cli/verbs.hpp"
#include "inference/evaluation_data.hpp"
#include "inference/forward_pass.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace dlrun::cli {
namespace {

struct evaluate_options {
  model_choice model;
  std::size_t threads = 0;
  bool json = false;
};

/// What makes the figures others than one would think.
std::vector<std::string> warnings_of(const inference::evaluation_data& data) {
  const auto records = data.records->record_count();
  std::vector<std::string> all;
  if (!data.changed.empty())
    all.push_back(fmt::format("the records of data.validation are not those that the run evaluated, so its "
                              "report has other figures: {}",
                              data.changed));
  if (!data.trained_on)
    all.push_back(fmt::format("whether the model was trained on some of these {} records cannot be told: {}",
                              records, data.why_unknown));
  else if (*data.trained_on > 0)
    all.push_back(fmt::format("the model was trained on {} of these {} records: the figures are not those of "
                              "unseen data",
                              *data.trained_on, records));
  return all;
}

void tell(const inference::loaded_model& model, const inference::evaluation_data& data,
          const inference::evaluation& found, const std::vector<std::string>& warnings, bool json) {
  if (json) {
    nlohmann::ordered_json line{{"job", model.spec.name()}};
    line["step"] = model.version ? nlohmann::ordered_json(model.version->value) : nullptr;
    line["samples"] = found.records;
    line["records_trained_on"] = data.trained_on ? nlohmann::ordered_json(*data.trained_on) : nullptr;
    line["warnings"] = warnings;
    line["loss"] = found.mean_loss();
    for (const auto& [name, value] : found.metrics) line[name] = value;
    // What is no number becomes null; names of files need not be UTF-8.
    say(stdout, "{}\n", line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return;
  }
  std::string text;
  for (const auto& [name, value] : found.metrics) text += fmt::format("  {} {:.4f}", name, value);
  say(stdout, "{}: loss {:.4f}{}  ({} records)\n",
      model.version ? fmt::format("{} at step {}", model.spec.name(), *model.version) : model.spec.name(),
      found.mean_loss(), text, found.records);
}

int run_evaluate(const evaluate_options& options) {
  const auto model = load_and_tell(options.model);
  if (!model) return complain(model.error());
  const auto data = inference::open_evaluation(*model);
  if (!data) return complain(data.error());
  const auto warnings = warnings_of(*data);
  for (const auto& one : warnings) say(stderr, "warning: {}\n", one);
  inference::forward_pass pass{
      model->model, inference::options_from(model->spec, compute_threads(model->spec, options.threads))};
  const auto found = pass.evaluate(model->parameters, *data->records);
  if (!found) return complain(found.error());
  tell(*model, *data, *found, warnings, options.json);
  if (std::isfinite(found->mean_loss())) return 0;
  return complain({error_code::diverged,
                   fmt::format("the loss is {}: what the model gives for some of the records is beyond a "
                               "float, so nothing of this tells how good it is",
                               found->mean_loss())});
}

} // namespace

void add_evaluate(CLI::App& app, verb& chosen) {
  auto options = std::make_shared<evaluate_options>();
  auto* command =
      app.add_subcommand("evaluate", "Loss and metrics of a trained model on the validation data");
  add_model_options(*command, options->model);
  add_threads(*command, options->threads, "bit");
  command->add_flag("--json", options->json, "One line of JSON, all digits");
  command->footer(
      "Examples:\n"
      "  dlrun evaluate runs/fashion-mnist-cnn\n"
      "  dlrun evaluate model.safetensors --spec job.yaml --json\n"
      "  dlrun evaluate runs/mine --set data.validation.records=new-images --set "
      "data.validation.labels=new-labels\n"
      "For a finished run the figures are those of its report.json, bit for bit, on a host like the one it "
      "ran on.");
  command->callback([options, &chosen] { chosen = [options] { return run_evaluate(*options); }; });
}

} // namespace dlrun::cli
