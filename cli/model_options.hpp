/// The options by which verbs are told of a trained model.
#pragma once

#include "cli/complain.hpp"
#include "cli/say.hpp"
#include "cli/whole_number.hpp"
#include "runtime/chosen_model.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <thread>

namespace dlrun::cli {

/// More than cores of any machine: threads that are asked for are made.
inline constexpr std::uint64_t compute_threads_max = 4096;

/// @param what that does not depend on it: "bit"
inline void add_threads(CLI::App& command, std::size_t& threads, const std::string& what) {
  command
      .add_option("--threads", threads,
                  "Microbatches computed at once (default: as the processor has cores); changes no " + what)
      ->check(whole_number(1, compute_threads_max));
}

inline void add_model_options(CLI::App& command, model_choice& into) {
  command.add_option("MODEL", into.path, "Run folder, or a weights file (safetensors; needs --spec)")
      ->required();
  command.add_option("--spec", into.spec_file, "Job specification that a weights file belongs to");
  auto* step = command.add_option(
      "--step", into.step, "Of a run: the version after that many steps (default: the newest on disk)");
  step->check(whole_number());
  command.add_flag("--best", into.best, "Of a run with train.keep_best: its best version")->excludes(step);
  command
      .add_option("--set", into.overrides,
                  "Override a value of the specification: path=value; may be repeated")
      ->allow_extra_args(false);
}

/// Says on stderr what was damaged and done without, and what else is to be told. @returns `model`
inline result<inference::loaded_model> tell_of_model(result<inference::loaded_model> model) {
  if (!model) return model;
  for (const auto& line : model->damaged) note("storage-damaged: " + line);
  for (const auto& line : model->notes) warn(line);
  return model;
}

/// Loads the model, and tells that.
inline result<inference::loaded_model> load_and_tell(const model_choice& choice) {
  return tell_of_model(runtime::load_model(choice));
}

/// How many threads to compute microbatches on: `wanted`, or, for 0, as many as keep the processor
/// busy.
inline std::size_t compute_threads(const spec::JobSpec& spec, std::size_t wanted) {
  if (wanted > 0) return wanted;
  const auto each = static_cast<std::size_t>(spec.cluster().threads_per_worker());
  return std::max<std::size_t>(1, std::thread::hardware_concurrency() / each);
}

} // namespace dlrun::cli
