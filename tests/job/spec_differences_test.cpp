#include "job/spec_differences.hpp"

#include "job/field_rules.hpp"
#include "tests/job/spec_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::job {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

/// "path: before -> after" of every difference that `overrides` make to the smallest specification.
std::vector<std::string> told(const std::vector<std::string>& overrides,
                              const std::string& text = test::minimal_spec) {
  const auto before = test::parse(text);
  const auto after = test::parse(text, overrides);
  EXPECT_TRUE(before && after) << (after ? "" : after.error().message);
  std::vector<std::string> lines;
  for (const auto& one : differences(*before, *after))
    lines.push_back(one.path + ": " + one.before + " -> " + one.after);
  return lines;
}

on_resume rule_of_change(const std::string& override_text) {
  const auto all =
      differences(*test::parse(test::minimal_spec), *test::parse(test::minimal_spec, {override_text}));
  EXPECT_EQ(all.size(), 1U) << override_text;
  return all.empty() ? spec::FieldRule::FIXED : all.front().rule;
}

TEST(spec_differences, equal_specifications_have_none) { EXPECT_THAT(told({}), IsEmpty()); }

TEST(spec_differences, name_the_key_and_both_values) {
  EXPECT_THAT(told({"train.seed=2", "train.shuffle=false", "train.optimizer.sgd.lr=0.1"}),
              ElementsAre("train.optimizer.sgd.lr: 0.05 -> 0.1", "train.seed: 1 -> 2",
                          "train.shuffle: true -> false"));
  EXPECT_THAT(told({"model.input=[1, 28, 29]"}), ElementsAre("model.input[2]: 28 -> 29"));
  EXPECT_THAT(told({"model.input=[784]"}), ElementsAre("model.input: [1, 28, 28] -> [784]"));
  EXPECT_THAT(told({"train.clip_norm=2"}), ElementsAre("train.clip_norm: nothing -> 2"));
}

TEST(spec_differences, another_kind_is_one_difference_and_a_list_of_another_length_too) {
  EXPECT_THAT(told({"model.layers[0]={relu: {}, name: flatten0}"}),
              ElementsAre("model.layers[0]: flatten -> relu"));
  EXPECT_THAT(told({"train.optimizer=adam"}), ElementsAre("train.optimizer: sgd -> adam"));
  EXPECT_THAT(told({"model.layers=[{linear: {out_features: 10}}]"}),
              ElementsAre("model.layers: 2 of them -> 1 of them"));
}

TEST(spec_differences, long_values_are_cut_between_characters) {
  const auto long_name = std::string(79, 'a') + "\u00e9\u00e9\u00e9";
  const auto lines = told({"data.train.records=/" + long_name});
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines.front().ends_with("...")) << lines.front();
}

/// A key that is added is FIXED until somebody says that it may change.
TEST(spec_differences, a_key_has_the_rule_of_its_field_or_of_the_section_around_it) {
  EXPECT_EQ(rule_of_change("train.seed=2"), spec::FieldRule::FIXED);
  EXPECT_EQ(rule_of_change("cluster.workers=7"), spec::FieldRule::FREE);
  EXPECT_EQ(rule_of_change("cluster.restart.intensity=3"), spec::FieldRule::FREE);
  EXPECT_EQ(rule_of_change("observability.tensorboard=true"), spec::FieldRule::FREE);
  EXPECT_EQ(rule_of_change("train.optimizer.sgd.momentum=0.5"), spec::FieldRule::REVISION);
  EXPECT_EQ(rule_of_change("train.lr_schedule=cosine"), spec::FieldRule::REVISION);
}

TEST(spec_differences, a_path_may_be_another_but_not_come_or_go) {
  EXPECT_EQ(rule_of_change("data.train.records=elsewhere"), spec::FieldRule::FREE);
  spec::JobSpec without, with_labels;
  with_labels.mutable_data()->mutable_train()->set_labels("labels");
  without.mutable_data()->mutable_train();
  const auto comes = differences(without, with_labels);
  ASSERT_EQ(comes.size(), 1U);
  EXPECT_EQ(comes.front().rule, spec::FieldRule::FIXED);
}

TEST(spec_differences, keys_are_listed_by_their_rule) {
  const auto free = keys_with(spec::FieldRule::FREE);
  EXPECT_THAT(free, Contains("cluster.workers"));
  EXPECT_THAT(free, Contains("observability"));
  EXPECT_THAT(free, Not(Contains("cluster.ps_shards")));
  EXPECT_THAT(keys_with(spec::FieldRule::REVISION), Contains("train.optimizer"));
}

} // namespace
} // namespace dlrun::job
