/// A model as a weights file.
#pragma once

#include "runtime/chosen_model.hpp"

#include <filesystem>

namespace dlrun::runtime {

/// Writes the parameters and buffers with PyTorch's names; the file says of which job, step and
/// program they are. It appears whole or not at all. @returns system.
result<void> write_model(const inference::loaded_model& model, const std::filesystem::path& file);

} // namespace dlrun::runtime
