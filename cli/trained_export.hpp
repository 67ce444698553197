/// The trained model as a weights file, once its job is complete: `dlrun train --export`.
#pragma once

#include "cli/verb_end.hpp"
#include "inference/model_source.hpp"

#include <dlrun/error.hpp>
#include <string>

namespace dlrun::cli {

/// Writes a model that was loaded, once its job is complete; a file that is there is replaced.
/// @returns "": it is there; else what is to be said of that
std::string write_trained(const result<inference::loaded_model>& model, const std::string& file);

/// Before anything is trained: whether `file` can be written, and replaces nothing of the run or
/// that the job in `spec_file` reads. @returns bad_usage with the way out.
result<void> check_export(const std::string& file, const std::string& run_dir, const std::string& spec_file);

/// Writes the model of a run that is completed; does nothing after any other end, or where `file`
/// is "". One that is there is replaced. @returns `ended`, or that it could not be written, which
/// another start may do.
verb_end export_trained(verb_end ended, const std::string& file, const std::string& run_dir);

} // namespace dlrun::cli
