#include "job/spec_writer.hpp"

#include "base/atomic_file.hpp"
#include "job/yaml_scalar.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <google/protobuf/message.h>
#include <map>

namespace dlrun::job {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Sections down to this depth get a line for each key; what is deeper (a layer, an optimizer) is
// written on one line.
constexpr int block_depth = 3;

/// In double quotes, escaped as both YAML and JSON read it.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += fmt::format("\\{}", c);
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + "\"";
}

std::string scalar_text(const std::string& text) { return is_plain_scalar(text) ? text : quoted(text); }

std::string flow_message(const Message& message);

/// `index` is the place in a list, -1 for a single value.
std::string flow_value(const Message& message, const FieldDescriptor& field, int index) {
  const auto& r = *message.GetReflection();
  const bool single = index < 0;
  switch (field.cpp_type()) {
  case FieldDescriptor::CPPTYPE_INT64:
    return fmt::format("{}",
                       single ? r.GetInt64(message, &field) : r.GetRepeatedInt64(message, &field, index));
  case FieldDescriptor::CPPTYPE_UINT64:
    return fmt::format("{}",
                       single ? r.GetUInt64(message, &field) : r.GetRepeatedUInt64(message, &field, index));
  case FieldDescriptor::CPPTYPE_DOUBLE: // the shortest text that reads back as the same bits
    return fmt::format("{}",
                       single ? r.GetDouble(message, &field) : r.GetRepeatedDouble(message, &field, index));
  case FieldDescriptor::CPPTYPE_BOOL:
    return fmt::format("{}", single ? r.GetBool(message, &field) : r.GetRepeatedBool(message, &field, index));
  case FieldDescriptor::CPPTYPE_STRING:
    return scalar_text(single ? r.GetString(message, &field) : r.GetRepeatedString(message, &field, index));
  default:
    return flow_message(single ? r.GetMessage(message, &field)
                               : r.GetRepeatedMessage(message, &field, index));
  }
}

/// Names and texts, by name: a map of protobuf has no order of its own.
std::string flow_pairs(const Message& message, const FieldDescriptor& field) {
  const auto& r = *message.GetReflection();
  std::map<std::string, std::string> pairs;
  for (int i = 0; i < r.FieldSize(message, &field); ++i) {
    const auto& entry = r.GetRepeatedMessage(message, &field, i);
    const auto text = [&](const FieldDescriptor* part) {
      return entry.GetReflection()->GetString(entry, part);
    };
    pairs[text(field.message_type()->map_key())] = text(field.message_type()->map_value());
  }
  std::string items;
  for (const auto& [key, value] : pairs)
    items += (items.empty() ? "" : ", ") + scalar_text(key) + ": " + scalar_text(value);
  return "{" + items + "}";
}

std::string flow_field(const Message& message, const FieldDescriptor& field) {
  if (field.is_map()) return flow_pairs(message, field);
  if (!field.is_repeated()) return flow_value(message, field, -1);
  std::string items;
  for (int i = 0; i < message.GetReflection()->FieldSize(message, &field); ++i)
    items += (i > 0 ? ", " : "") + flow_value(message, field, i);
  return "[" + items + "]";
}

std::vector<const FieldDescriptor*> written_fields(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  // ListFields goes by number; people read in the order of declaration.
  std::sort(fields.begin(), fields.end(),
            [](const auto* a, const auto* b) { return a->index() < b->index(); });
  return fields;
}

std::string flow_message(const Message& message) {
  std::string keys;
  for (const auto* field : written_fields(message))
    keys += (keys.empty() ? "" : ", ") + field->name() + ": " + flow_field(message, *field);
  return "{" + keys + "}";
}

void block_message(const Message& message, int depth, std::string& out) {
  const std::string indent(static_cast<std::size_t>(depth) * 2, ' ');
  for (const auto* field : written_fields(message)) {
    const bool sections = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field->is_map();
    out += indent + field->name() + ":";
    if (sections && field->is_repeated()) {
      out += '\n';
      for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i)
        out += indent + "  - " + flow_value(message, *field, i) + '\n';
    } else if (sections && depth + 1 < block_depth &&
               !written_fields(message.GetReflection()->GetMessage(message, field)).empty()) {
      out += '\n';
      block_message(message.GetReflection()->GetMessage(message, field), depth + 1, out);
    } else {
      out += ' ' + flow_field(message, *field) + '\n';
    }
  }
}

} // namespace

std::string write_value(const Message& message, const FieldDescriptor& field, int index) {
  return index < 0 ? flow_field(message, field) : flow_value(message, field, index);
}

std::string write_spec(const spec::JobSpec& spec) {
  std::string out;
  block_message(spec, 0, out);
  return out;
}

std::string written_spec(const spec::JobSpec& spec) { return std::string{written_head} + write_spec(spec); }

result<void> write_spec_file(const std::filesystem::path& file, const spec::JobSpec& spec) {
  return base::write_file_atomically(file, written_spec(spec));
}

} // namespace dlrun::job
