/// The job specification as a message that a C++ program fills in: what a job file says, field for
/// key.
#pragma once

// dlrun::spec::JobSpec and its parts; docs/spec.md explains every field. IWYU pragma: export
#include "proto/job_spec.pb.h"
