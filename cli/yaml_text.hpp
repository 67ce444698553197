/// Values as YAML.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace dlrun::cli {

/// A document in block style, without its "---": keys in their order, texts of several lines as
/// they are where YAML lets that be, and whatever could be taken for something else in quotes.
/// Readers of YAML 1.1 and 1.2 read the same. @param value an object or a list; texts are UTF-8
std::string to_yaml(const nlohmann::ordered_json& value);

} // namespace dlrun::cli
