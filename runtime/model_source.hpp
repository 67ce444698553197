/// A trained model, as users name it: the folder of a run, or a weights file and its job file.
#pragma once

#include "engine/model.hpp"
#include "proto/job_spec.pb.h"

#include <cstdint>
#include <dlrun/error.hpp>
#include <dlrun/ids.hpp>
#include <dlrun/model.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::runtime {

struct given_model {
  spec::JobSpec spec; ///< complete; of a run its newest revision
  std::shared_ptr<const engine::model> model;
  std::vector<float> parameters; ///< the flat vector; metrics and padding zero
  // Of a run:
  std::optional<version_id> version{};
  std::string parameters_sha256{};    ///< with the optimizer's state, as in report.json
  std::vector<std::string> damaged{}; ///< what was found damaged on the way, and done without
};

/// Loads the model. Nothing is written. Of a run the data is opened only where steps have to be made again.
/// @returns bad_usage for a folder that is no run's, is in use, or has nothing (or not that step) on disk,
/// and for options that do not go together; bad_spec; bad_data for a file that does not fit; storage_damaged.
result<given_model> load_model(const model_choice& choice);

} // namespace dlrun::runtime
