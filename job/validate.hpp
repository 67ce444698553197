/// Can this specification be run?
#pragma once

#include "job/problems.hpp"
#include "proto/job_spec.pb.h"

namespace dlrun::job {

/// Checks a specification whose defaults are filled in: required keys are there, values are within
/// their bounds, names are unique, layers refer to earlier layers. The engine checks shapes, the
/// data library checks files. Adds to `problems`, with the places that `sources` knows; skips keys
/// that already have a problem.
void validate(const spec::JobSpec& spec, const source_map& sources, problem_list& problems);

/// The same for a specification that was not read from text; problems name keys only.
/// @returns bad_spec with all problems, one a line.
result<void> validate(const spec::JobSpec& spec);

/// Checks only the rules of a message's own fields (proto/field_rule.proto).
void check_rules(const google::protobuf::Message& message, const source_map& sources, problem_list& problems);

} // namespace dlrun::job
