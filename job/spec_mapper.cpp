#include "job/spec_mapper.hpp"

#include "base/decimal.hpp"
#include "base/nearest.hpp"
#include "base/utf8.hpp"
#include "job/field_rules.hpp"
#include "job/spec_path.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

namespace dlrun::job {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

bool is_integer(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_INT64 ||
         field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64;
}

bool is_number(const FieldDescriptor& field) {
  return is_integer(field) || field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
}

/// Without the '+' and the zeros in front of a number.
std::string without_front(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const std::string sign = text.starts_with('-') ? "-" : "";
  text.remove_prefix(sign.size());
  while (base::has_leading_zero(text)) text.remove_prefix(1);
  return sign + std::string{text};
}

/// How to write a number that is there, but not in the form of one; "" where that is not what is
/// wrong with the text.
std::string way_to_write(const std::string& text, const FieldDescriptor& field) {
  constexpr double exact_max = 1e15; // of a double all digits are known
  constexpr auto characters_of_numbers = "0123456789.eE+-";
  const auto plain = without_front(text);
  const auto value = base::parse_decimal<double>(plain);
  const bool is_finite = value && std::isfinite(*value);
  const bool is_known = is_finite && (!is_integer(field) || base::parse_decimal<std::int64_t>(plain));
  if (is_known && plain != text)
    return fmt::format("; write {}, without {}", plain, text.front() == '+' ? "'+'" : "leading zeros");
  if (is_integer(field) && is_finite && std::abs(*value) < exact_max && std::trunc(*value) == *value)
    return is_known ? "" : fmt::format("; write {:.0f}", *value);
  const bool begins_as_one = text.find_first_of("0123456789") <= 1; // behind a sign or a point
  const bool has_others = text.find_first_not_of(characters_of_numbers) != std::string::npos;
  return begins_as_one && has_others ? "; write it in decimal digits alone" : "";
}

void expected(const yaml_node& node, const FieldDescriptor& field, const std::string& path, mapping& into) {
  std::string found = describe(node);
  const bool wants_text = field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
  if (node.is == yaml_node::kind::text && !node.plain && !wants_text) found += " in quotes";
  if (node.is == yaml_node::kind::text && node.plain && is_number(field))
    found += way_to_write(node.text, field);
  into.problems.add(into.at(node), path, fmt::format("expected {}, found {}", expectation(field), found));
}

std::optional<bool> parse_bool(const std::string& text) {
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  return std::nullopt;
}

/// Sets a field, or adds to it if it is a list.
#define DLRUN_STORE(Type, value)                                                                             \
  do {                                                                                                       \
    if (field.is_repeated())                                                                                 \
      reflection.Add##Type(&message, &field, value);                                                         \
    else                                                                                                     \
      reflection.Set##Type(&message, &field, value);                                                         \
    return true;                                                                                             \
  } while (false)

/// @returns false if the text is not a value of the field's type.
bool store_scalar(const yaml_node& node, Message& message, const FieldDescriptor& field) {
  const auto& reflection = *message.GetReflection();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) DLRUN_STORE(String, node.text);
  if (!node.plain) return false;
  switch (field.cpp_type()) {
  case FieldDescriptor::CPPTYPE_INT64:
    if (const auto value = base::parse_decimal<std::int64_t>(node.text)) DLRUN_STORE(Int64, *value);
    return false;
  case FieldDescriptor::CPPTYPE_UINT64:
    if (const auto value = base::parse_decimal<std::uint64_t>(node.text)) DLRUN_STORE(UInt64, *value);
    return false;
  case FieldDescriptor::CPPTYPE_DOUBLE:
    // "inf" and "nan" are numbers too, which no field has a use for.
    if (const auto value = base::parse_decimal<double>(node.text); value && std::isfinite(*value))
      DLRUN_STORE(Double, *value);
    return false;
  case FieldDescriptor::CPPTYPE_BOOL:
    if (const auto value = parse_bool(node.text)) DLRUN_STORE(Bool, *value);
    return false;
  default: return false;
  }
}
#undef DLRUN_STORE

void map_item(const yaml_node& node, Message& message, const FieldDescriptor& field, const std::string& path,
              mapping& into) {
  into.sources.set(path, into.at(node));
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    const auto& reflection = *message.GetReflection();
    Message* const section = field.is_repeated() ? reflection.AddMessage(&message, &field)
                                                 : reflection.MutableMessage(&message, &field);
    map_message(node, *section, path, into);
    return;
  }
  if (node.is != yaml_node::kind::text || !store_scalar(node, message, field))
    expected(node, field, path, into);
}

/// Names and texts of the user's own choice.
void map_pairs(const yaml_node& node, Message& message, const FieldDescriptor& field, const std::string& path,
               mapping& into) {
  if (node.is == yaml_node::kind::nothing) return;
  if (node.is != yaml_node::kind::map) return expected(node, field, path, into);
  std::map<std::string, std::string> pairs;
  for (const auto& entry : node.entries) {
    if (entry.key.is != yaml_node::kind::text || entry.value.is != yaml_node::kind::text) {
      into.problems.add(into.at(entry.key), path, fmt::format("expected {}", expectation(field)));
    } else if (!pairs.emplace(entry.key.text, entry.value.text).second) {
      into.problems.add(into.at(entry.key), path,
                        fmt::format("\"{}\" is written twice", base::printable(entry.key.text)));
    }
  }
  const auto& entry_type = *field.message_type();
  for (const auto& [key, value] : pairs) {
    Message* const entry = message.GetReflection()->AddMessage(&message, &field);
    entry->GetReflection()->SetString(entry, entry_type.map_key(), key);
    entry->GetReflection()->SetString(entry, entry_type.map_value(), value);
  }
}

/// `relu` for `{relu: {}}`.
void map_choice_name(const yaml_node& node, Message& message, const std::string& path, mapping& into) {
  const Descriptor& type = *message.GetDescriptor();
  const auto* const choice = choice_of(type);
  if (const auto* const member = type.FindFieldByName(node.text);
      member != nullptr && member->containing_oneof() == choice) {
    into.sources.set(join_path(path, member->name()), into.at(node));
    message.GetReflection()->MutableMessage(&message, member);
    return;
  }
  into.problems.add(into.at(node), path,
                    fmt::format("unknown \"{}\"; {}", base::printable(node.text),
                                base::hint(node.text, member_names(*choice))));
}

/// What to write instead of `key` in the section `path`; `root`, if not null, is searched too.
std::string instead_of(const std::string& key, const Descriptor& section, const std::string& path,
                       const Descriptor* root) {
  const auto names = field_names(section);
  if (root != nullptr && !base::is_close(key, base::nearest(key, names)) && key_exists(key, *root))
    return fmt::format("did you mean \"{}\"?", nearest_path(join_path(path, key), *root));
  return base::hint(key, names);
}

void unknown_key(const yaml_node& key, const Message& message, const std::string& path, mapping& into) {
  into.problems.add(into.at(key), path,
                    [key = key.text, section = message.GetDescriptor(), path, root = into.root] {
                      return fmt::format("unknown key \"{}\"; {}", base::printable(key),
                                         instead_of(key, *section, path, root));
                    });
}

/// A choice holds one member; the second one written is the problem.
bool another_member_is_set(const yaml_node& key, const FieldDescriptor& field, const Message& message,
                           const std::string& path, mapping& into) {
  const auto* const choice = field.real_containing_oneof();
  if (choice == nullptr) return false;
  const auto* const set = message.GetReflection()->GetOneofFieldDescriptor(message, choice);
  if (set == nullptr) return false;
  into.problems.add(into.at(key), path,
                    fmt::format("both \"{}\" and \"{}\"; choose one", set->name(), field.name()));
  return true;
}

void map_entry(const yaml_entry& entry, Message& message, const std::string& path,
               std::vector<std::string>& seen, mapping& into) {
  if (entry.key.is != yaml_node::kind::text) {
    into.problems.add(into.at(entry.key), path,
                      fmt::format("a key must be a word, found {}", describe(entry.key)));
    return;
  }
  const auto* const field = message.GetDescriptor()->FindFieldByName(entry.key.text);
  if (field == nullptr) {
    unknown_key(entry.key, message, path, into);
    return;
  }
  const std::string field_path = join_path(path, field->name());
  if (std::find(seen.begin(), seen.end(), field->name()) != seen.end()) {
    into.problems.add(into.at(entry.key), field_path,
                      fmt::format("written twice, first on line {}", into.sources.find(field_path).line));
    return;
  }
  seen.push_back(field->name());
  if (another_member_is_set(entry.key, *field, message, path, into)) return;
  into.sources.set(field_path, into.at(entry.key));
  map_field(entry.value, message, *field, field_path, into);
}

} // namespace

void map_field(const yaml_node& node, Message& message, const FieldDescriptor& field, const std::string& path,
               mapping& into) {
  message.GetReflection()->ClearField(&message, &field);
  if (field.is_map()) {
    map_pairs(node, message, field, path, into);
    return;
  }
  const bool single = rule_of(field).or_single() && node.is == yaml_node::kind::text;
  if (!field.is_repeated() || single) {
    map_item(node, message, field, path, into);
    return;
  }
  if (node.is != yaml_node::kind::list) {
    into.problems.add(
        into.at(node), path,
        fmt::format("expected a list ([...]), each value {}; found {}", expectation(field), describe(node)));
    return;
  }
  for (std::size_t i = 0; i < node.items.size(); ++i)
    map_item(node.items[i], message, field, item_path(path, i), into);
}

void map_message(const yaml_node& node, Message& message, const std::string& path, mapping& into) {
  if (node.is == yaml_node::kind::nothing) return; // `relu:` is `relu: {}`
  if (node.is == yaml_node::kind::text && choice_of(*message.GetDescriptor()) != nullptr) {
    map_choice_name(node, message, path, into);
    return;
  }
  if (node.is != yaml_node::kind::map) {
    const auto names = field_names(*message.GetDescriptor());
    into.problems.add(into.at(node), path,
                      fmt::format("expected {}, found {}",
                                  names.empty() ? "no arguments"
                                                : "keys (" + fmt::format("{}", fmt::join(names, ", ")) + ")",
                                  describe(node)));
    return;
  }
  std::vector<std::string> seen;
  for (const auto& entry : node.entries) map_entry(entry, message, path, seen, into);
}

} // namespace dlrun::job
