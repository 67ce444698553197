#include "job/spec_path.hpp"

#include "base/decimal.hpp"
#include "base/nearest.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

namespace dlrun::job {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr std::size_t segments_max = 16;

tl::unexpected<error> bad_path(std::string_view text, const char* why) {
  return fail(error_code::bad_spec,
              fmt::format("\"{}\" is not the path of a key ({}); write it like train.epochs or "
                          "model.layers[2].dropout.p",
                          text, why));
}

void collect(const Descriptor& message, const std::string& section, std::vector<std::string>& out) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    std::string path = join_path(section, field.name());
    const bool is_section = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field.is_map();
    if (field.is_repeated() && is_section) path += "[N]";
    out.push_back(path);
    if (is_section) collect(*field.message_type(), path, out);
  }
}

std::string last_key(const std::string& path) {
  const auto dot = path.rfind('.');
  std::string key = dot == std::string::npos ? path : path.substr(dot + 1);
  return key.substr(0, key.find('['));
}

/// The path with the user's indices replaced by N, and the first of them.
std::pair<std::string, std::string> without_indices(const std::string& path) {
  std::string plain, first;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '[') {
      plain += path[i];
      continue;
    }
    const auto close = path.find(']', i);
    if (close == std::string::npos) break;
    if (first.empty()) first = path.substr(i + 1, close - i - 1);
    plain += "[N]";
    i = close;
  }
  return {plain, first};
}

} // namespace

result<std::vector<path_segment>> parse_path(std::string_view text) {
  std::vector<path_segment> segments;
  std::string_view rest = text;
  while (true) {
    const auto dot = rest.find('.');
    std::string_view part = rest.substr(0, dot);
    path_segment segment;
    if (const auto open = part.find('['); open != std::string_view::npos) {
      const std::string_view digits = part.substr(open + 1);
      std::size_t index = 0;
      const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
      const bool closed = end + 1 == digits.data() + digits.size() && *end == ']';
      if (problem != std::errc{} || !closed || base::has_leading_zero(digits))
        return bad_path(text, "places in lists are written [0], [1], ...");
      segment.index = index;
      part = part.substr(0, open);
    }
    if (part.empty()) return bad_path(text, "a key is empty");
    segment.key = part;
    segments.push_back(std::move(segment));
    if (segments.size() > segments_max) return bad_path(text, "too many keys");
    if (dot == std::string_view::npos) return segments;
    rest = rest.substr(dot + 1);
  }
}

std::string join_path(const std::string& section, const std::string& key) {
  return section.empty() ? key : section + "." + key;
}

std::string item_path(const std::string& path, std::size_t index) {
  return fmt::format("{}[{}]", path, index);
}

std::vector<std::string> all_paths(const Descriptor& root) {
  std::vector<std::string> paths;
  collect(root, "", paths);
  return paths;
}

bool key_exists(std::string_view key, const Descriptor& root) {
  const auto paths = all_paths(root);
  return std::any_of(paths.begin(), paths.end(),
                     [&](const std::string& path) { return last_key(path) == key; });
}

std::string nearest_path(const std::string& path, const Descriptor& root) {
  const auto [wanted, index] = without_indices(path);
  const auto candidates = all_paths(root);
  std::vector<std::string> same_key;
  std::copy_if(candidates.begin(), candidates.end(), std::back_inserter(same_key),
               [key = last_key(wanted)](const std::string& candidate) { return last_key(candidate) == key; });
  std::string found = base::nearest(wanted, same_key.empty() ? candidates : same_key);
  if (const auto place = found.find("[N]"); place != std::string::npos && !index.empty())
    found.replace(place, 3, "[" + index + "]");
  return found;
}

} // namespace dlrun::job
