/// What may stand in a field, from the options in the proto file.
#pragma once

#include "proto/field_rule.pb.h"

#include <google/protobuf/descriptor.h>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::job {

/// The field's rule; an empty one if it has none.
const spec::FieldRule& rule_of(const google::protobuf::FieldDescriptor& field);

/// "an integer from 1 to 1024", "one of processes, threads", "true or false": for errors and the
/// reference. For a list, what each of its values must be.
std::string expectation(const google::protobuf::FieldDescriptor& field);

/// Does the number satisfy the field's bounds? NaN and infinities never do.
bool within_bounds(const spec::FieldRule& rule, double value);
/// Does the text satisfy the field's rule (one_of, identifier, path)?
bool text_allowed(const spec::FieldRule& rule, const std::string& text);

/// Names of the message's fields, in order of declaration.
std::vector<std::string> field_names(const google::protobuf::Descriptor& message);
/// The oneof of a message type that is a choice (`kind` of LayerSpec, OptimizerSpec); null for any
/// other type.
const google::protobuf::OneofDescriptor* choice_of(const google::protobuf::Descriptor& message);
/// Names of a oneof's members, in order of declaration.
std::vector<std::string> member_names(const google::protobuf::OneofDescriptor& choice);

} // namespace dlrun::job
