#include "cli/yaml_text.hpp"

#include <array>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <yaml-cpp/yaml.h>

namespace dlrun::cli {
namespace {

using yaml_node = nlohmann::ordered_json;

TEST(yaml_text, is_in_block_style_with_keys_in_their_order) {
  const yaml_node what{{"kind", "Job"},
                       {"name", "a"},
                       {"list", yaml_node::array({{{"x", 1}, {"y", yaml_node::array({"b", true})}}, "c"})},
                       {"none", yaml_node::object()},
                       {"empty", yaml_node::array()},
                       {"deep", {{"er", {{"number", -3}}}}}};
  EXPECT_EQ(to_yaml(what), "kind: Job\n"
                           "name: a\n"
                           "list:\n"
                           "- x: 1\n"
                           "  \"y\":\n"
                           "  - b\n"
                           "  - true\n"
                           "- c\n"
                           "none: {}\n"
                           "empty: []\n"
                           "deep:\n"
                           "  er:\n"
                           "    number: -3\n");
}

TEST(yaml_text, texts_of_several_lines_are_as_they_were) {
  EXPECT_EQ(to_yaml({{"a", {{"job.yaml", "x: 1\n\ny:\n  - 2\n"}}}}), "a:\n"
                                                                     "  job.yaml: |\n"
                                                                     "    x: 1\n"
                                                                     "\n"
                                                                     "    y:\n"
                                                                     "      - 2\n");
}

/// Between spaces.
constexpr auto words =
    "a yes No null ~ 1 0x1 1e3 - #a ' \" \\ {a} [a] *a &a !a %a @a `a ? | > = << $(POD_IP) self:7700 "
    "2026-11-27 1:30 --- ... \x01 \x7f \xc2\x85 \xf0\x9f\x98\x80 a:b a#b "
    "a\xe2\x80\xa8"
    "b \xe2\x80\xa9 \xef\xbb\xbf \xef\xbf\xbd \xf4\x8f\xbf\xbf";
constexpr auto texts = std::to_array<const char*>({"",
                                                   " ",
                                                   "- a",
                                                   "a: b",
                                                   "a #b",
                                                   "a\nb",
                                                   "a\nb\n",
                                                   "a\nb\nc\n",
                                                   "a\nb\nc\n\n",
                                                   " a\nb\nc\n",
                                                   "\na\nb\n",
                                                   "a\n \nb\n",
                                                   "a\n\tb\nc\n",
                                                   "a \nb \nc\n",
                                                   "a\r\nb\r\nc\r\n",
                                                   "\t",
                                                   "a\n---\nb\n",
                                                   "a\n\n\nb\n",
                                                   "\xc3\xa4\n\xc3\xb6\n\xc3\xbc\n",
                                                   "a\n# b\nc: d\n"});

void expect_same(const std::string& text) {
  const yaml_node what{
      {"before", "x"}, {"text", text}, {"list", yaml_node::array({text, {{"deep", text}}})}, {"after", 1}};
  const auto node = YAML::Load(to_yaml(what));
  EXPECT_EQ(node["text"].as<std::string>(), text) << to_yaml(what);
  EXPECT_EQ(node["list"][0].as<std::string>(), text);
  EXPECT_EQ(node["list"][1]["deep"].as<std::string>(), text);
  EXPECT_EQ(node["after"].as<int>(), 1);
}

TEST(yaml_text, is_in_ascii_alone) {
  EXPECT_EQ(to_yaml({{"a", "\xc3\xa4\x7f\xe2\x80\xa8\xe2\x80\xa9\xf0\x9f\x98\x80"}}),
            "a: \"\\u00e4\\u007f\\u2028\\u2029\\U0001f600\"\n");
}

/// By this reader; by that of Python in tests/integration/manifests_test.py.
TEST(yaml_text, every_text_comes_back_as_it_was) {
  std::istringstream stream{words};
  for (std::string word; stream >> word;) expect_same(word);
  for (const auto* text : texts) expect_same(text);
}

} // namespace
} // namespace dlrun::cli
