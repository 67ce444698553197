/// The job specification as a message that a C++ program fills in: it has a field for each key of a
/// job file.
#pragma once

// dlrun::spec::JobSpec and its parts; docs/spec.md explains every field. IWYU pragma: export
#include "proto/job_spec.pb.h"
