#include "job/yaml_tree.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <sstream>
#include <stdexcept>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

namespace dlrun::job {
namespace {

/// Leaves the parser from within one of its callbacks, which have no other way out.
struct refusal : std::runtime_error {
  refusal(const YAML::Mark& mark, const std::string& why)
      : std::runtime_error(why)
      , line(mark.line + 1) {}
  int line;
};

/// Builds the tree from the parser's events. Containers under construction are kept on a stack of
/// values, not of pointers, since growing a list moves its items.
class tree_builder final : public YAML::EventHandler {
public:
  tree_builder(int depth_max, std::size_t values_max)
      : depth_max_(depth_max)
      , values_max_(values_max) {}

  yaml_node take_root() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnAnchor(const YAML::Mark& mark, const std::string&) override { refuse_anchor(mark); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse_anchor(mark); }

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check(mark, "", anchor);
    yaml_node node;
    // The mark is where the next thing begins, be it lines below.
    const bool is_of_key = !open_.empty() && open_.back().has_key;
    node.line = is_of_key ? open_.back().key.line : line_of(mark);
    finish(std::move(node));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check(mark, tag, anchor);
    yaml_node node;
    node.is = yaml_node::kind::text;
    node.text = value;
    node.plain = tag == "?";
    node.line = line_of(mark);
    if (node.plain && (value == "~" || value == "null" || value == "Null" || value == "NULL")) {
      node.is = yaml_node::kind::nothing;
      node.text.clear();
    }
    finish(std::move(node));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    start(mark, tag, anchor, yaml_node::kind::list);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    start(mark, tag, anchor, yaml_node::kind::map);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapEnd() override { end(); }

private:
  struct open_container {
    yaml_node node;
    yaml_node key;
    bool has_key = false;
  };

  static int line_of(const YAML::Mark& mark) { return std::max(mark.line, 0) + 1; }

  [[noreturn]] static void refuse_anchor(const YAML::Mark& mark) {
    throw refusal(mark, "anchors (&) and aliases (*) are not used here; write the value out");
  }

  void check(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) refuse_anchor(mark);
    if (!tag.empty() && tag != "?" && tag != "!")
      throw refusal(mark, fmt::format("tags (\"{}\") are not used here; leave it out", base::printable(tag)));
    if (++values_ > values_max_) throw refusal(mark, fmt::format("more than {} values", values_max_));
  }

  void start(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, yaml_node::kind kind) {
    check(mark, tag, anchor);
    if (static_cast<int>(open_.size()) >= depth_max_)
      throw refusal(mark, fmt::format("nested deeper than {} levels", depth_max_));
    open_container fresh;
    fresh.node.is = kind;
    fresh.node.line = line_of(mark);
    open_.push_back(std::move(fresh));
  }

  void end() {
    yaml_node done = std::move(open_.back().node);
    open_.pop_back();
    finish(std::move(done));
  }

  void finish(yaml_node node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    open_container& parent = open_.back();
    if (parent.node.is == yaml_node::kind::list) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.has_key) {
      parent.key = std::move(node);
      parent.has_key = true;
    } else {
      parent.node.entries.push_back({std::move(parent.key), std::move(node)});
      parent.has_key = false;
    }
  }

  int depth_max_;
  std::size_t values_max_;
  std::size_t values_ = 0;
  std::vector<open_container> open_;
  yaml_node root_;
};

/// Refuses everything: for what follows the first document.
class no_more_documents final : public YAML::EventHandler {
public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    throw refusal(mark, "a second document (---) begins; one is read");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
  }
  void OnMapEnd() override {}
};

} // namespace

tl::expected<yaml_node, yaml_failure> parse_yaml(std::string_view text, int depth_max,
                                                 std::size_t values_max) {
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    tree_builder builder(depth_max, values_max);
    parser.HandleNextDocument(builder);
    no_more_documents rest;
    parser.HandleNextDocument(rest);
    return builder.take_root();
  } catch (const refusal& refused) {
    return tl::unexpected(yaml_failure{refused.line, refused.what()});
  } catch (const YAML::Exception& broken) {
    return tl::unexpected(yaml_failure{std::max(broken.mark.line, 0) + 1, "not valid YAML: " + broken.msg});
  } catch (const std::exception& other) {
    return tl::unexpected(yaml_failure{1, std::string("cannot be read as YAML: ") + other.what()});
  }
}

std::string describe(const yaml_node& node) {
  switch (node.is) {
  case yaml_node::kind::nothing: return "nothing";
  case yaml_node::kind::list: return "a list";
  case yaml_node::kind::map: return "keys";
  case yaml_node::kind::text: return fmt::format("\"{}\"", base::printable(node.text));
  }
  return "nothing";
}

} // namespace dlrun::job
