/// What a start of the coordinator is given.
#pragma once

#include "actors/common/job_facts.hpp"
#include "actors/common/role_context.hpp"

namespace dlrun::coordinator {

/// It computes nothing, and knows no model.
using coordinator_context = common::basic_role_context<common::job_facts>;

} // namespace dlrun::coordinator
