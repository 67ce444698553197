#include "job/spec_override.hpp"

#include "base/utf8.hpp"
#include "job/field_rules.hpp"
#include "job/spec_path.hpp"
#include "job/spec_reader.hpp"

#include <fmt/format.h>

namespace dlrun::job {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

/// Where the walk along a path stands.
struct cursor {
  Message* message;
  const FieldDescriptor* field = nullptr;
  std::string path; // of `field`
};

class override_walk {
public:
  override_walk(std::string path, Message& root, mapping& into)
      : wanted_(std::move(path))
      , root_(root)
      , into_(into) {}

  /// Finds the message and the field that the path names.
  /// @returns false after reporting why there is none.
  bool walk(const std::vector<path_segment>& segments, cursor& at) {
    for (std::size_t i = 0; i < segments.size(); ++i) {
      const bool last = i + 1 == segments.size();
      const std::string section = at.path;
      at.field = at.message->GetDescriptor()->FindFieldByName(segments[i].key);
      if (at.field == nullptr) return refuse_unknown();
      if (!last && at.field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return refuse_unknown();
      at.path = join_path(section, at.field->name());
      if (!last && !choice_allows(at, section)) return false;
      if (segments[i].index && !index_exists(at, *segments[i].index)) return false;
      if (!last && !descend(at, segments[i])) return false;
    }
    return true;
  }

private:
  bool refuse(std::string why) {
    into_.problems.add({into_.origin, 0}, wanted_, std::move(why));
    return false;
  }

  bool refuse_unknown() {
    return refuse(
        fmt::format("no such key; did you mean \"{}\"?", nearest_path(wanted_, *root_.GetDescriptor())));
  }

  /// One cannot reach into a member that is not the chosen one: `optimizer.adam.lr` of an sgd.
  bool choice_allows(const cursor& at, const std::string& section) {
    const auto* const choice = at.field->real_containing_oneof();
    if (choice == nullptr) return true;
    const auto* const set = at.message->GetReflection()->GetOneofFieldDescriptor(*at.message, choice);
    if (set == nullptr || set == at.field) return true;
    return refuse(fmt::format("{} is \"{}\"; to make it another, set it whole: {}={{{}: {{...}}}}", section,
                              set->name(), section, at.field->name()));
  }

  bool index_exists(const cursor& at, std::size_t index) {
    if (!at.field->is_repeated() || at.field->is_map())
      return refuse(fmt::format("{} is not a list", at.path));
    const auto size = static_cast<std::size_t>(at.message->GetReflection()->FieldSize(*at.message, at.field));
    if (index < size) return true;
    return refuse(size == 0 ? fmt::format("{} is empty", at.path)
                            : fmt::format("{} has the places 0 to {}", at.path, size - 1));
  }

  bool descend(cursor& at, const path_segment& segment) {
    if (at.field->is_map()) return refuse(fmt::format("{0} is set whole: {0}={{name: text, ...}}", at.path));
    const auto* const reflection = at.message->GetReflection();
    if (!at.field->is_repeated()) {
      at.message = reflection->MutableMessage(at.message, at.field);
      return true;
    }
    if (!segment.index) return refuse(fmt::format("{} is a list; say which, e.g. {}[0]", at.path, at.path));
    at.message = reflection->MutableRepeatedMessage(at.message, at.field, static_cast<int>(*segment.index));
    at.path = item_path(at.path, *segment.index);
    return true;
  }

  std::string wanted_;
  Message& root_;
  mapping& into_;
};

/// Replaces one place of a list: maps the value on an otherwise empty message, then copies it over.
void set_item(const yaml_node& node, const cursor& at, std::size_t index, mapping& into) {
  const auto* const reflection = at.message->GetReflection();
  const std::string path = item_path(at.path, index);
  const std::unique_ptr<Message> scratch(at.message->New());
  yaml_node list;
  list.is = yaml_node::kind::list;
  list.items.push_back(node);
  problem_list found;
  mapping trial{found, into.sources, into.origin, into.has_lines, into.root};
  map_field(list, *scratch, *at.field, at.path, trial);
  if (!found.empty()) {
    map_field(list, *scratch, *at.field, at.path, into); // again, to report
    return;
  }
  // Appended, swapped into place, the old one dropped: works for lists of any type.
  at.message->MergeFrom(*scratch);
  const int appended = reflection->FieldSize(*at.message, at.field) - 1;
  reflection->SwapElements(at.message, at.field, static_cast<int>(index), appended);
  reflection->RemoveLast(at.message, at.field);
  into.sources.set(path, {into.origin, 0});
}

/// The value as YAML; for text keys, text that is not a YAML scalar is taken as it stands (a path
/// with ": " in it).
bool parse_value(const std::string& text, const FieldDescriptor& field, const std::string& path,
                 yaml_node& node, mapping& into) {
  auto parsed = parse_yaml(text, spec_depth_max);
  const bool takes_text = field.cpp_type() == FieldDescriptor::CPPTYPE_STRING && !field.is_repeated();
  if (takes_text && !text.empty() && (!parsed || parsed->is != yaml_node::kind::text)) {
    node.is = yaml_node::kind::text;
    node.text = text;
    return true;
  }
  if (!parsed) {
    into.problems.add({into.origin, 0}, path, parsed.error().text);
    return false;
  }
  node = std::move(*parsed);
  return true;
}

} // namespace

void apply_override(const std::string& text, Message& root, problem_list& problems, source_map& sources) {
  mapping into{problems, sources, "--set " + base::printable(text), false, root.GetDescriptor()};
  const auto equals = text.find('=');
  if (base::first_invalid_utf8(text) || text.find('\0') != std::string::npos) {
    problems.add({into.origin, 0}, "", "not UTF-8 text");
    return;
  }
  if (equals == std::string::npos) {
    problems.add({into.origin, 0}, "", "expected path=value, e.g. train.epochs=3");
    return;
  }
  const std::string path = text.substr(0, equals);
  const auto segments = parse_path(path);
  if (!segments) {
    problems.add({into.origin, 0}, "", segments.error().message);
    return;
  }
  cursor at{&root, nullptr, ""};
  override_walk steps(path, root, into);
  yaml_node node;
  if (!steps.walk(*segments, at) || !parse_value(text.substr(equals + 1), *at.field, path, node, into))
    return;
  if (segments->back().index)
    set_item(node, at, *segments->back().index, into);
  else {
    sources.set(at.path, {into.origin, 0});
    map_field(node, *at.message, *at.field, at.path, into);
  }
}

} // namespace dlrun::job
