#include "job/spec_differences.hpp"

#include "job/field_rules.hpp"
#include "job/spec_path.hpp"
#include "job/spec_writer.hpp"

#include <fmt/format.h>

namespace dlrun::job {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr std::size_t shown_bytes_max = 80;

on_resume rule_within(const FieldDescriptor& field, on_resume of_section) {
  const auto& rule = rule_of(field);
  return rule.has_on_resume() ? rule.on_resume() : of_section;
}

/// Never cut within a character of UTF-8.
std::string cut(std::string text) {
  if (text.size() <= shown_bytes_max) return text;
  auto end = shown_bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "...";
}

class comparison {
public:
  std::vector<spec_difference> take() && { return std::move(found_); }

  void compare(const Message& before, const Message& after, const std::string& path, on_resume rule) {
    const auto* const choice = choice_of(*before.GetDescriptor());
    const bool same_kind = choice == nullptr || kind_of(before, *choice) == kind_of(after, *choice);
    if (!same_kind) {
      const auto kind = name_of(after, *choice);
      found_.push_back({path, name_of(before, *choice), kind, rule, kind});
    }
    for (int i = 0; i < before.GetDescriptor()->field_count(); ++i) {
      const auto& field = *before.GetDescriptor()->field(i);
      if (field.real_containing_oneof() != nullptr && !same_kind) continue;
      compare_field(before, after, field, join_path(path, field.name()), rule_within(field, rule));
    }
  }

private:
  static const FieldDescriptor* kind_of(const Message& message,
                                        const google::protobuf::OneofDescriptor& choice) {
    return message.GetReflection()->GetOneofFieldDescriptor(message, &choice);
  }

  static std::string name_of(const Message& message, const google::protobuf::OneofDescriptor& choice) {
    const auto* const kind = kind_of(message, choice);
    return kind != nullptr ? kind->name() : "nothing";
  }

  void compare_field(const Message& before, const Message& after, const FieldDescriptor& field,
                     const std::string& path, on_resume rule) {
    if (field.is_repeated()) return compare_list(before, after, field, path, rule);
    const bool was = before.GetReflection()->HasField(before, &field);
    const bool is = after.GetReflection()->HasField(after, &field);
    if (!was && !is) return;
    if (was && is && field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
      return compare(before.GetReflection()->GetMessage(before, &field),
                     after.GetReflection()->GetMessage(after, &field), path, rule);
    const bool comes_or_goes = was != is && rule_of(field).path();
    add(path, was ? write_value(before, field) : "nothing", is ? write_value(after, field) : "nothing",
        comes_or_goes ? spec::FieldRule::FIXED : rule);
  }

  /// Of lists of one length each place is compared, so that a long one is not told as a whole.
  void compare_list(const Message& before, const Message& after, const FieldDescriptor& field,
                    const std::string& path, on_resume rule) {
    const auto size = before.GetReflection()->FieldSize(before, &field);
    const auto size_after = after.GetReflection()->FieldSize(after, &field);
    if (field.is_map()) return add(path, write_value(before, field), write_value(after, field), rule);
    const bool sections = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (size != size_after && sections)
      return add(path, fmt::format("{} of them", size), fmt::format("{} of them", size_after), rule);
    if (size != size_after) return add(path, write_value(before, field), write_value(after, field), rule);
    for (int i = 0; i < size; ++i) {
      const auto place = item_path(path, static_cast<std::size_t>(i));
      if (sections)
        compare(before.GetReflection()->GetRepeatedMessage(before, &field, i),
                after.GetReflection()->GetRepeatedMessage(after, &field, i), place, rule);
      else
        add(place, write_value(before, field, i), write_value(after, field, i), rule);
    }
  }

  void add(const std::string& path, std::string before, std::string after, on_resume rule) {
    if (before == after) return;
    auto shown = cut(after);
    found_.push_back({path, cut(std::move(before)), std::move(shown), rule, std::move(after)});
  }

  std::vector<spec_difference> found_;
};

void collect(const Descriptor& message, const std::string& path, on_resume rule,
             std::vector<std::string>& keys) {
  for (int i = 0; i < message.field_count(); ++i) {
    const auto& field = *message.field(i);
    const auto place = join_path(path, field.name());
    if (rule_of(field).has_on_resume() && rule_of(field).on_resume() == rule) keys.push_back(place);
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field.is_map())
      collect(*field.message_type(), place, rule, keys);
  }
}

} // namespace

std::vector<spec_difference> differences(const spec::JobSpec& before, const spec::JobSpec& after) {
  comparison all;
  all.compare(before, after, "", spec::FieldRule::FIXED);
  return std::move(all).take();
}

std::vector<std::string> keys_with(on_resume rule) {
  std::vector<std::string> keys;
  collect(*spec::JobSpec::descriptor(), "", rule, keys);
  return keys;
}

} // namespace dlrun::job
