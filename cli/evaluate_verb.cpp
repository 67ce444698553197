#include "cli/complain.hpp"
#include "cli/evaluation.hpp"
#include "cli/model_options.hpp"
#include "cli/verbs.hpp"

#include <nlohmann/json.hpp>

namespace dlrun::cli {
namespace {

struct evaluate_options {
  model_choice model;
  std::size_t threads = 0;
  bool json = false;
};

void tell(const runtime::given_model& model, const dlrun::validation_metrics& metrics, bool json) {
  if (json) {
    nlohmann::ordered_json line{{"job", model.spec.name()}};
    line["step"] = model.version ? nlohmann::ordered_json(model.version->value) : nullptr;
    line["samples"] = metrics.samples;
    line["loss"] = metrics.loss;
    for (const auto& [name, value] : metrics.metrics) line[name] = value;
    say(stdout, "{}\n", line.dump()); // what is no number becomes null
    return;
  }
  std::string text;
  for (const auto& [name, value] : metrics.metrics) text += fmt::format("  {} {:.4f}", name, value);
  say(stdout, "{}: loss {:.4f}{}  ({} records)\n",
      model.version ? fmt::format("{} at step {}", model.spec.name(), *model.version) : model.spec.name(),
      metrics.loss, text, metrics.samples);
}

int run_evaluate(const evaluate_options& options) {
  const auto model = load_and_tell(options.model);
  if (!model) return complain(model.error());
  const auto data = open_validation(*model);
  if (!data) return complain(data.error());
  const auto metrics = evaluate(*model, **data, compute_threads(model->spec, options.threads));
  if (!metrics) return complain(metrics.error());
  tell(*model, *metrics, options.json);
  return 0;
}

} // namespace

void add_evaluate(CLI::App& app, verb& chosen) {
  auto options = std::make_shared<evaluate_options>();
  auto* command =
      app.add_subcommand("evaluate", "Loss and metrics of a trained model on the validation data");
  add_model_options(*command, options->model);
  command->add_option("--threads", options->threads,
                      "Microbatches computed at once (default: as the processor has cores); changes no bit");
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
