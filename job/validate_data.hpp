/// The rules of `data:` that concern more than one key.
#pragma once

#include "job/problems.hpp"
#include "proto/job_spec.pb.h"

namespace dlrun::job {

/// Checks that each data set has the keys that its format needs and none that would be ignored, and
/// that validation data is read as training data is. The rules of the keys have been checked
/// before. Adds to `problems`; skips keys that already have a problem. The data library checks the
/// files.
void check_data(const spec::DataSpec& data, const source_map& sources, problem_list& problems);

} // namespace dlrun::job
