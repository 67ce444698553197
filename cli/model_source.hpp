/// A trained model, as the command line names it: the folder of a run, or a weights file and its job file.
#pragma once

#include "engine/model.hpp"
#include "proto/job_spec.pb.h"

#include <cstdint>
#include <dlrun/error.hpp>
#include <dlrun/ids.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::cli {

/// What the user wrote.
struct model_choice {
  std::string path;                     ///< folder of a run, or a safetensors file
  std::string spec_file{};              ///< of a file: the job it belongs to
  std::vector<std::string> overrides{}; ///< path=value, of the specification
  std::optional<std::uint64_t> step{};  ///< of a run: its version after that many steps; the newest otherwise
  bool best = false; ///< of a run: the version that its report calls the best; no `step` then
};

struct given_model {
  spec::JobSpec spec; ///< complete; of a run its newest revision
  std::shared_ptr<const engine::model> model;
  std::vector<float> parameters; ///< the flat vector; metrics and padding zero
  // Of a run:
  std::optional<version_id> version{};
  std::string parameters_sha256{}; ///< with the optimizer's state, as in report.json
};

/// Loads the model. Nothing is written. Of a run the data is opened only where steps have to be made again.
/// @returns bad_usage for a folder that is no run's, is in use, or has nothing (or not that step) on disk,
/// and for options that do not go together; bad_spec; bad_data for a file that does not fit; storage_damaged.
result<given_model> load_model(const model_choice& choice);

} // namespace dlrun::cli
