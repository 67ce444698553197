/// The trained model as a weights file, once its job is complete: `dlrun train --export`.
#pragma once

#include "cli/verb_end.hpp"

#include <dlrun/error.hpp>
#include <string>

namespace dlrun::cli {

/// Before anything is trained: whether `file` can be written. @returns bad_usage with the way out.
result<void> check_export(const std::string& file, const std::string& run_dir);

/// Writes the model of a run that is completed; does nothing after any other end, or where `file`
/// is "". One that is there is replaced. @returns `ended`, or that it could not be written, which
/// another start may do.
verb_end export_trained(verb_end ended, const std::string& file, const std::string& run_dir);

} // namespace dlrun::cli
