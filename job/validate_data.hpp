/// The rules of `data:` that concern more than one key.
#pragma once

#include "job/problems.hpp"
#include "proto/job_spec.pb.h"

namespace dlrun::job {

/// Checks that each data set, whose words are those of their keys, has the keys that its format
/// needs and none that would be ignored, and that validation data is read as training data is.
/// Adds to `problems`; keys with a problem already are left alone. Whether the files exist and what
/// is in them is the data library's question.
void check_data(const spec::DataSpec& data, const source_map& sources, problem_list& problems);

} // namespace dlrun::job
