/// Rules between the keys of `cluster.journal`, and of each of them.
#pragma once

#include "job/problems.hpp"
#include "proto/job_spec.pb.h"

namespace dlrun::job {

void check_journal(const spec::JobSpec& spec, const source_map& sources, problem_list& problems);

} // namespace dlrun::job
