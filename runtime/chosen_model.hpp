/// A trained model, as users name it: the folder of a run, or a weights file and its job file.
#pragma once

#include "inference/model_source.hpp"

#include <filesystem>

namespace dlrun::runtime {

/// Loads the model. Nothing is written. @returns bad_usage for a path that is neither, a folder in
/// use, and as inference::load_run() and load_weights_file().
result<inference::loaded_model> load_model(const model_choice& choice);

/// The newest version of a run whose root is this process, when none of its roles runs any more.
/// Errors likewise.
result<inference::loaded_model> load_own_model(const std::filesystem::path& folder);

} // namespace dlrun::runtime
