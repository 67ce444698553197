#include "cli/yaml_text.hpp"

#include "job/yaml_scalar.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dlrun::cli {
namespace {

using yaml_value = nlohmann::ordered_json;

std::size_t bytes_of_character(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

/// @param character one, in UTF-8
std::uint32_t code_point(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  if (character.size() == 1) return first;
  std::uint32_t point = first & (0x7fU >> character.size());
  for (const char c : character.substr(1)) point = point << 6 | (static_cast<unsigned char>(c) & 0x3fU);
  return point;
}

/// In quotes as JSON has them, which are YAML's too, and in ASCII alone: some of what else JSON
/// lets stand there is a line break or not allowed in YAML.
std::string in_quotes(const std::string& text) {
  const auto json = yaml_value(text).dump();
  std::string out;
  for (std::size_t at = 0; at < json.size();) {
    const auto bytes = bytes_of_character(json[at]);
    const auto point = code_point(std::string_view{json}.substr(at, bytes));
    if (point < 0x7f)
      out += json[at];
    else
      out += point > 0xffff ? fmt::format("\\U{:08x}", point) : fmt::format("\\u{:04x}", point);
    at += bytes;
  }
  return out;
}

/// May stand as it is, each line behind its indentation.
bool is_block(const std::string& text) {
  if (std::ranges::count(text, '\n') < 2 || text.front() == ' ' || text.front() == '\n') return false;
  if (!text.ends_with('\n') || text.ends_with("\n\n")) return false;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = text.find('\n', begin);
    const auto line = std::string_view{text}.substr(begin, end - begin);
    const auto is_printable = [](char c) { return c >= ' ' && c <= '~'; };
    if (!std::ranges::all_of(line, is_printable)) return false;
    if (!line.empty() && line.find_first_not_of(' ') == line.npos) return false;
    begin = end + 1;
  }
  return true;
}

std::string block(const std::string& text, const std::string& indent) {
  std::string out = "|\n";
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = text.find('\n', begin);
    if (end != begin) out += indent + text.substr(begin, end - begin);
    out += '\n';
    begin = end + 1;
  }
  out.pop_back();
  return out;
}

void write_value(const yaml_value& what, const std::string& indent, std::string& out);

/// Behind a key or a dash. @param deeper indentation of what is below that
void write_below(const yaml_value& what, bool is_item, const std::string& indent, const std::string& deeper,
                 std::string& out) {
  const bool nests = what.is_structured() && !what.empty();
  if (nests && !is_item) {
    out += '\n';
    return write_value(what, what.is_array() ? indent : deeper, out);
  }
  out += ' ';
  if (nests) { // its first line is that of the dash
    std::string below;
    write_value(what, deeper, below);
    out += below.substr(deeper.size());
  } else if (what.is_string()) {
    const auto& text = what.get_ref<const std::string&>();
    out += (job::is_plain_scalar(text) ? text
            : is_block(text)           ? block(text, deeper)
                                       : in_quotes(text)) +
           '\n';
  } else {
    out += what.dump() + '\n';
  }
}

void write_value(const yaml_value& what, const std::string& indent, std::string& out) {
  const auto deeper = indent + "  ";
  if (what.is_array())
    for (const auto& item : what) {
      out += indent + '-';
      write_below(item, true, indent, deeper, out);
    }
  else
    for (const auto& [key, item] : what.items()) {
      out += indent + (job::is_plain_scalar(key) ? key : in_quotes(key)) + ':';
      write_below(item, false, indent, deeper, out);
    }
}

} // namespace

std::string to_yaml(const yaml_value& what) {
  std::string out;
  write_value(what, "", out);
  return out;
}

} // namespace dlrun::cli
