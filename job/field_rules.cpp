#include "job/field_rules.hpp"

#include "base/utf8.hpp"
#include "job/quantity.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dlrun::job {
namespace {

using google::protobuf::FieldDescriptor;

constexpr std::size_t identifier_length_max = 100;
constexpr std::size_t path_length_max = 4095; // PATH_MAX without its terminator

bool is_identifier(const std::string& text) {
  const auto letter_or_digit = [](unsigned char c) { return c < 0x80 && std::isalnum(c) != 0; };
  if (text.empty() || text.size() > identifier_length_max ||
      !letter_or_digit(static_cast<unsigned char>(text.front())))
    return false;
  return std::all_of(text.begin(), text.end(),
                     [&](unsigned char c) { return letter_or_digit(c) || c == '.' || c == '_' || c == '-'; });
}

/// Bounds are doubles; those of integers are whole and below 2^53, so they print without a
/// fraction.
std::string bound(double value) { return fmt::format("{}", value); }

std::string range_of(const spec::FieldRule& rule) {
  std::string text;
  if (rule.has_min())
    text += rule.min_exclusive() ? " above " + bound(rule.min()) : " from " + bound(rule.min());
  if (rule.has_max()) {
    if (rule.min_exclusive()) text += ",";
    text += rule.max_exclusive() ? " to below " + bound(rule.max())
                                 : (rule.min_exclusive() ? " at most " : " to ") + bound(rule.max());
  }
  return text;
}

std::string integer_range(const FieldDescriptor& field, const spec::FieldRule& rule) {
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64 && !rule.has_max())
    return " from 0 to 18446744073709551615";
  return range_of(rule);
}

std::string quantity_range(const spec::FieldRule& rule, std::string_view unit) {
  std::string text;
  if (rule.has_min()) text += fmt::format(" from {}{}", rule.min(), unit);
  if (rule.has_max()) text += fmt::format(" to {}{}", rule.max(), unit);
  return text;
}

template <class Number>
bool quantity_allowed(const spec::FieldRule& rule, const std::optional<Number>& value) {
  return value && within_bounds(rule, static_cast<double>(*value));
}

std::string text_expectation(const spec::FieldRule& rule) {
  if (rule.one_of_size() == 1) return "\"" + rule.one_of(0) + "\"";
  if (rule.one_of_size() > 1) return fmt::format("one of {}", fmt::join(rule.one_of(), ", "));
  if (rule.identifier())
    return fmt::format(
        "a name of letters, digits, '.', '_', '-' that starts with a letter or digit (at most {})",
        identifier_length_max);
  if (rule.duration()) return "a duration" + quantity_range(rule, "s") + ", as in 2s, 1.5min";
  if (rule.bytes()) return "a size" + quantity_range(rule, "B") + ", as in 512MiB, 10GB";
  if (rule.auto_or_count()) return "auto, or an integer" + range_of(rule);
  if (rule.interval()) return "off, or a number of epochs or steps, as in 1 epoch, 500 steps";
  return rule.path() ? "the path of a file" : "text";
}

} // namespace

const spec::FieldRule& rule_of(const FieldDescriptor& field) {
  return field.options().GetExtension(spec::rule);
}

std::string expectation(const FieldDescriptor& field) {
  const auto& rule = rule_of(field);
  if (field.is_map()) return "names, each with a text";
  switch (field.cpp_type()) {
  case FieldDescriptor::CPPTYPE_INT64:
  case FieldDescriptor::CPPTYPE_UINT64: return "an integer" + integer_range(field, rule);
  case FieldDescriptor::CPPTYPE_DOUBLE: return "a number" + range_of(rule);
  case FieldDescriptor::CPPTYPE_BOOL: return "true or false";
  case FieldDescriptor::CPPTYPE_STRING: return text_expectation(rule);
  default: break;
  }
  if (const auto* choice = choice_of(*field.message_type()))
    return fmt::format("one of {}", fmt::join(member_names(*choice), ", "));
  const auto names = field_names(*field.message_type());
  return names.empty() ? "no arguments" : fmt::format("keys ({})", fmt::join(names, ", "));
}

bool within_bounds(const spec::FieldRule& rule, double value) {
  if (!std::isfinite(value)) return false;
  if (rule.has_min() && (rule.min_exclusive() ? value <= rule.min() : value < rule.min())) return false;
  return !rule.has_max() || (rule.max_exclusive() ? value < rule.max() : value <= rule.max());
}

bool text_allowed(const spec::FieldRule& rule, const std::string& text) {
  if (rule.one_of_size() > 0)
    return std::find(rule.one_of().begin(), rule.one_of().end(), text) != rule.one_of().end();
  if (rule.identifier()) return is_identifier(text);
  if (rule.duration()) return quantity_allowed(rule, parse_duration(text));
  if (rule.bytes()) return quantity_allowed(rule, parse_bytes(text));
  if (rule.auto_or_count()) return text == "auto" || quantity_allowed(rule, parse_count(text));
  if (rule.interval()) return text == "off" || parse_interval(text);
  if (rule.path())
    return !text.empty() && text.size() <= path_length_max && text.find('\0') == std::string::npos &&
           !base::first_invalid_utf8(text);
  return true;
}

std::vector<std::string> field_names(const google::protobuf::Descriptor& message) {
  std::vector<std::string> names;
  for (int i = 0; i < message.field_count(); ++i) names.push_back(message.field(i)->name());
  return names;
}

const google::protobuf::OneofDescriptor* choice_of(const google::protobuf::Descriptor& message) {
  return message.real_oneof_decl_count() > 0 ? message.oneof_decl(0) : nullptr;
}

std::vector<std::string> member_names(const google::protobuf::OneofDescriptor& choice) {
  std::vector<std::string> names;
  for (int i = 0; i < choice.field_count(); ++i) names.push_back(choice.field(i)->name());
  return names;
}

} // namespace dlrun::job
