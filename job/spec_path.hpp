/// Paths of keys in a specification: "model.layers[2].dropout.p".
#pragma once

#include <dlrun/error.hpp>
#include <google/protobuf/descriptor.h>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlrun::job {

struct path_segment {
  std::string key;
  /// Place in a list, 0-based.
  std::optional<std::size_t> index;
};

/// Splits a path into segments. @returns an error that says what is wrong with the path.
result<std::vector<path_segment>> parse_path(std::string_view text);

/// "section.key"; the key alone at the top.
std::string join_path(const std::string& section, const std::string& key);
/// "path[3]".
std::string item_path(const std::string& path, std::size_t index);

/// All paths of values in specifications of this type, with "[N]" for places in lists:
/// "train.epochs", "model.layers[N].linear.out_features".
std::vector<std::string> all_paths(const google::protobuf::Descriptor& root);

/// Whether any section has a key of this name.
bool key_exists(std::string_view key, const google::protobuf::Descriptor& root);

/// The existing path nearest to `path`: by its last key where that exists somewhere, else by edit
/// distance.
std::string nearest_path(const std::string& path, const google::protobuf::Descriptor& root);

} // namespace dlrun::job
