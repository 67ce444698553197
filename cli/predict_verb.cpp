#include "cli/complain.hpp"
#include "cli/model_options.hpp"
#include "cli/output_place.hpp"
#include "cli/prediction.hpp"
#include "cli/verbs.hpp"
#include "job/defaults.hpp"

namespace dlrun::cli {
namespace {

struct predict_options {
  model_choice model;
  std::string input;
  std::string output;
  std::string format = "csv";
  std::size_t threads = 0;
};

result<void> run(const predict_options& options) {
  if (auto fine =
          check_output_place(options.output, {options.input, options.model.path, options.model.spec_file});
      !fine)
    return fine;
  const auto model = load_and_tell(options.model);
  if (!model) return tl::unexpected(model.error());
  if (auto fine = check_output_place(options.output, job::files_read_by(model->trained)); !fine) return fine;
  const auto input =
      inference::open_input(model->spec, model->version.has_value(), *model->model, options.input);
  if (!input) return tl::unexpected(input.error());
  auto out = line_output::open(options.output);
  if (!out) return tl::unexpected(out.error());
  const auto format = options.format == "json" ? prediction_format::json : prediction_format::csv;
  const auto threads = compute_threads(model->spec, options.threads);
  const auto without_number = predict(*model, *input, format, threads, *out);
  if (!without_number) return tl::unexpected(without_number.error());
  if (auto finished = out->finish(); !finished) return finished;
  if (*without_number == 0) return {};
  return fail(error_code::diverged,
              fmt::format("what the model gives for {} of the {} records is NaN or beyond a float",
                          *without_number, input->records->record_count()));
}

int run_predict(const predict_options& options) {
  const auto done = run(options);
  return done ? 0 : complain(done.error());
}

} // namespace

void add_predict(CLI::App& app, verb& chosen) {
  auto options = std::make_shared<predict_options>();
  auto* command = app.add_subcommand("predict", "What a trained model gives for records without labels");
  add_model_options(*command, options->model);
  command->add_option("--input", options->input, "Records, read as the job reads its training data")
      ->required();
  command->add_option("--output", options->output, "File to write (default: standard output)");
  command->add_option("--format", options->format, "csv, or json: one object a line")
      ->check(CLI::IsMember({"csv", "json"}));
  add_threads(*command, options->threads, "byte");
  command->footer(
      "Examples:\n"
      "  dlrun predict runs/fashion-mnist-cnn --input new-images.gz > classes.csv\n"
      "  dlrun predict model.safetensors --spec job.yaml --input new-images --format json\n"
      "A line has the record's place in the file, from 0, where classes are told apart the class of the "
      "greatest\noutput and its name, if the data has names, and all outputs of the last layer, before any "
      "softmax or sigmoid.");
  command->callback([options, &chosen] { chosen = [options] { return run_predict(*options); }; });
}

} // namespace dlrun::cli
