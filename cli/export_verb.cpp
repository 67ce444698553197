#include "cli/complain.hpp"
#include "cli/model_options.hpp"
#include "cli/output_place.hpp"
#include "cli/verbs.hpp"
#include "cli/whole_number.hpp"
#include "job/defaults.hpp"
#include "runtime/model_weights_file.hpp"
#include "runtime/run_folder.hpp"

#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

namespace dlrun::cli {
namespace {

struct export_options {
  model_choice model;
  std::string output;
  bool json = false;
};

/// Whether the file to write is stdout by another name (/dev/stdout, /proc/self/fd/1).
bool is_stdout(const std::string& file) {
  struct stat named {};
  struct stat out {};
  return ::stat(file.c_str(), &named) == 0 && ::fstat(STDOUT_FILENO, &out) == 0 &&
         named.st_dev == out.st_dev && named.st_ino == out.st_ino;
}

void tell(std::FILE* to, const inference::loaded_model& model, const std::string& file, bool json) {
  std::uint64_t tensors = 0;
  std::uint64_t floats = 0;
  for (const auto& tensor : model.model->layout().tensors()) {
    if (tensor.kind == tensor_kind::metric) continue;
    ++tensors;
    floats += tensor.size;
  }
  if (json) {
    const nlohmann::ordered_json line{
        {"file", file},       {"job", model.spec.name()}, {"step", model.version->value},
        {"tensors", tensors}, {"floats", floats},         {"parameters_sha256", model.parameters_sha256}};
    say(to, "{}\n", line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return;
  }
  say(to, "{}: step {}, {} tensors, {} floats\nparameters_sha256 {}\n", file, *model.version, tensors, floats,
      model.parameters_sha256);
}

int run_export(const export_options& options) {
  if (auto folder = runtime::find_run(options.model.path); !folder) return complain(folder.error());
  const auto model = load_and_tell(options.model);
  if (!model) return complain(model.error());
  const auto file = options.output.empty() ? model->spec.name() + ".safetensors" : options.output;
  std::FILE* const told = is_stdout(file) ? stderr : stdout; // nothing goes into the file but the model
  auto read = job::files_read_by(model->trained);
  read.push_back(options.model.path);
  if (auto fine = check_output_place(file, read); !fine) return complain(fine.error());
  const auto written = runtime::write_model(*model, file);
  if (!written) return complain(written.error());
  tell(told, *model, file, options.json);
  return 0;
}

} // namespace

void add_export(CLI::App& app, verb& chosen) {
  auto options = std::make_shared<export_options>();
  auto* command = app.add_subcommand(
      "export", "Write a run's parameters as a weights file (safetensors, with PyTorch's names)");
  command->add_option("DIR", options->model.path, "Run folder, e.g. runs/fashion-mnist-cnn")->required();
  command->add_option(
      "--output", options->output,
      "File to write (default: <name of the job>.safetensors in the current folder); one that "
      "is there is replaced");
  auto* step = command->add_option(
      "--step", options->model.step,
      "The version after that many steps (default: the newest on disk; of a finished run the last)");
  step->check(whole_number());
  command->add_flag("--best", options->model.best, "The best version, of a run with train.keep_best")
      ->excludes(step);
  command->add_flag("--json", options->json, "One line of JSON about what was written");
  command->footer(
      "Examples:\n"
      "  dlrun export runs/fashion-mnist-cnn\n"
      "  dlrun export runs/fashion-mnist-cnn --step 469 --output early.safetensors\n"
      "In Python: model.load_state_dict(safetensors.torch.load_file(\"early.safetensors\")). A folder "
      "that a run is\nusing is refused; nothing in it is changed.");
  command->callback([options, &chosen] { chosen = [options] { return run_export(*options); }; });
}

} // namespace dlrun::cli
