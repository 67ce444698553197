/// Where a verb that reads files may write.
#pragma once

#include <dlrun/error.hpp>
#include <string>
#include <vector>

namespace dlrun::cli {

/// Whether writing `output` would replace nothing that the verb reads: not `inputs` (files, or
/// folders with all that is in them), and of a run folder among them no file that the run consists
/// of. "" is the standard output. @returns bad_usage with the way out.
result<void> check_output_place(const std::string& output, const std::vector<std::string>& inputs);

} // namespace dlrun::cli
