/// Can this specification be run?
#pragma once

#include "job/problems.hpp"
#include "proto/job_spec.pb.h"

namespace dlrun::job {

/// Checks a filled specification: what must be there is, values are within their bounds, names are
/// unique, layers refer to earlier ones. Whether shapes fit is the engine's question, whether files
/// exist the data set's. Adds to `problems` at the places that `sources` knows; keys with a problem
/// already are left alone.
void validate(const spec::JobSpec& spec, const source_map& sources, problem_list& problems);

/// The same for a specification that was not read from text; problems name keys only.
/// @returns bad_spec with all problems, one a line.
result<void> validate(const spec::JobSpec& spec);

/// The rules of a message's fields alone (proto/field_rule.proto), whatever it is part of.
void check_rules(const google::protobuf::Message& message, const source_map& sources, problem_list& problems);

} // namespace dlrun::job
