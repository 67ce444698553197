/// YAML text as a tree that remembers its lines.
#pragma once

#include <dlrun/error.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace dlrun::job {

struct yaml_entry;

/// A YAML value. Unlike YAML::Node it keeps duplicate keys, so that they can be reported, and knows
/// whether text was quoted.
struct yaml_node {
  enum class kind { nothing, text, list, map };

  kind is = kind::nothing;
  std::string text;
  /// Whether the text had no quotes, and so may mean a number or a boolean.
  bool plain = false;
  /// 1-based.
  int line = 1;
  std::vector<yaml_node> items;
  std::vector<yaml_entry> entries;
};
struct yaml_entry {
  yaml_node key;
  yaml_node value;
};

/// What stopped the parser.
struct yaml_failure {
  int line = 1;
  std::string text;
};

/// Most values in a document, unless the caller says otherwise.
inline constexpr std::size_t yaml_values_max = 100'000;

/// Parses one document. Refuses what a specification has no use for: anchors and aliases (they can
/// expand without bound), tags, several documents, more than `depth_max` levels, more than
/// `values_max` values. Never throws.
tl::expected<yaml_node, yaml_failure> parse_yaml(std::string_view text, int depth_max,
                                                 std::size_t values_max = yaml_values_max);

/// "a list", "keys", "nothing", or the text itself in quotes: for "expected ..., found ...".
std::string describe(const yaml_node& node);

} // namespace dlrun::job
