/// Maps YAML on protobuf messages, by their descriptors: no code for any single key.
#pragma once

#include "job/problems.hpp"
#include "job/yaml_tree.hpp"

#include <google/protobuf/message.h>

namespace dlrun::job {

/// Context of a mapping: where the text comes from, and where places and problems are noted.
struct mapping {
  problem_list& problems;
  source_map& sources;
  /// File name, or the text of an override.
  std::string origin;
  /// False for overrides, which have no lines.
  bool has_lines = true;
  /// Type of the whole specification, to tell in which section a misplaced key belongs.
  const google::protobuf::Descriptor* root = nullptr;

  location at(const yaml_node& node) const { return {origin, has_lines ? node.line : 0}; }
};

/// Maps keys to the fields of `message`, whose path is `path`. Unknown and repeated keys and values
/// of the wrong type become problems; everything else is mapped. A message that is a choice (a
/// layer, an optimizer) may also be written as the name of its member alone: `relu`.
void map_message(const yaml_node& node, google::protobuf::Message& message, const std::string& path,
                 mapping& into);

/// Maps a value to one field and replaces its content. validate() checks bounds later.
void map_field(const yaml_node& node, google::protobuf::Message& message,
               const google::protobuf::FieldDescriptor& field, const std::string& path, mapping& into);

} // namespace dlrun::job
