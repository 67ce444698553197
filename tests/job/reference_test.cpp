#include "job/field_rules.hpp"
#include "job/spec_path.hpp"
#include "proto/job_spec.pb.h"

#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace dlrun::job {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

/// The rows of the reference's tables, by the key in their first column, within the section of
/// their message.
std::string reference() {
  std::ifstream file(std::string(DLRUN_SOURCE_DIR) + "/docs/spec.md");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// "| `workers` | an integer from 1 to 1024 | 2 |": how the row of a field must begin.
std::string row_start(const FieldDescriptor& field) {
  const auto& rule = rule_of(field);
  std::string type = expectation(field);
  if (field.is_repeated() && !field.is_map()) type = "list, each " + type;
  std::string fallback = rule.required()       ? "required"
                         : rule.has_default_() ? "`" + rule.default_() + "`"
                                               : "";
  return "| `" + field.name() + "` | " + type + " | " + fallback;
}

void expect_rows(const Descriptor& message, const std::string& text) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field.is_map()) {
      expect_rows(*field.message_type(), text);
      continue;
    }
    EXPECT_NE(text.find(row_start(field)), std::string::npos) << "docs/spec.md lacks the row\n"
                                                              << row_start(field);
  }
}

TEST(reference, lists_every_key_with_its_range_and_default) {
  expect_rows(*spec::JobSpec::descriptor(), reference());
}

TEST(spec_path, lists_every_key_and_finds_the_nearest) {
  const auto& root = *spec::JobSpec::descriptor();
  const auto paths = all_paths(root);
  for (const char* path :
       {"name", "train.epochs", "model.layers[N].linear.out_features", "data.validation.labels"})
    EXPECT_NE(std::find(paths.begin(), paths.end(), path), paths.end()) << path;
  EXPECT_TRUE(key_exists("period_s", root));
  EXPECT_FALSE(key_exists("period", root));
  EXPECT_EQ(nearest_path("cluster.period_s", root), "cluster.restart.period_s");
  EXPECT_EQ(nearest_path("model.layers[7].conv2d.strid", root), "model.layers[7].conv2d.stride");
}

} // namespace
} // namespace dlrun::job
