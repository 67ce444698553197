#include "job/validate.hpp"

#include "tests/job/spec_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

namespace dlrun::job {
namespace {

using test::minimal_spec;
using test::parse;
using test::problems_of;
using test::with;

TEST(validate, accepts_what_the_reader_returns) {
  const auto spec = parse(minimal_spec);
  ASSERT_TRUE(spec);
  EXPECT_TRUE(validate(*spec));
}

TEST(validate, works_on_specifications_that_were_never_text) {
  auto spec = *parse(minimal_spec);
  spec.mutable_cluster()->set_workers(5000);
  spec.mutable_train()->mutable_optimizer()->mutable_sgd()->set_lr(std::numeric_limits<double>::quiet_NaN());
  const auto checked = validate(spec);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().message,
            "job specification: train.optimizer.sgd.lr: expected a number from 0 to 1000000, found nan\n"
            "job specification: cluster.workers: expected an integer from 1 to 1024, found 5000");
}

const std::string with_validation =
    with(minimal_spec, "labels: labels}}", "labels: labels}, validation: {records: images, labels: labels}}");

TEST(validate, evaluation_on_the_way_needs_records_and_snapshots) {
  EXPECT_EQ(problems_of(with_validation, {"train.evaluate_every=2 epochs"}), "");
  EXPECT_EQ(
      problems_of(minimal_spec, {"train.evaluate_every=2 epochs"}),
      "--set train.evaluate_every=2 epochs: train.evaluate_every: there is nothing to evaluate on; write "
      "data.validation");
  EXPECT_THAT(problems_of(with_validation, {"train.evaluate_every=500 steps", "durability.log=off"}),
              testing::HasSubstr("train.evaluate_every: with durability.log: off only the last version"));
  EXPECT_THAT(
      problems_of(with_validation, {"train.evaluate_every=5"}),
      testing::HasSubstr("expected off, or a number of epochs or steps, as in 1 epoch, 500 steps, found"));
}

TEST(validate, what_goes_by_evaluations_needs_some) {
  for (const std::string key : {"keep_best", "early_stopping"}) {
    EXPECT_THAT(problems_of(with_validation, {"train." + key + "={}"}),
                testing::HasSubstr("train." + key + ": needs evaluations to choose from"));
    EXPECT_EQ(problems_of(with_validation, {"train." + key + "={}", "train.evaluate_every=1 epoch"}), "");
  }
}

TEST(validate, two_layers_of_one_name_are_a_problem) {
  EXPECT_EQ(problems_of(with(minimal_spec, "[flatten, {linear: {out_features: 10}}]",
                             "[{flatten: {}, name: x}, {linear: {out_features: 10}, name: x}]")),
            "job.yaml:3: model.layers[1].name: the name \"x\" is taken by an earlier layer");
  EXPECT_EQ(problems_of(with(minimal_spec, "[flatten,", "[{flatten: {}, name: linear1},")),
            "job.yaml:3: model.layers[1].name: the name \"linear1\" is taken by an earlier layer");
  EXPECT_EQ(problems_of(with(minimal_spec, "[flatten,", "[{flatten: {}, name: input},")),
            "job.yaml:3: model.layers[0].name: the name \"input\" is taken by the model's input");
}

TEST(validate, inputs_are_names_of_earlier_layers) {
  EXPECT_EQ(problems_of(with(minimal_spec, "10}}]", "10}, inputs: [input]}]")), "");
  EXPECT_EQ(problems_of(with(minimal_spec, "10}}]", "10}, inputs: [flaten0]}]")),
            "job.yaml:3: model.layers[1].inputs[0]: no earlier layer is called \"flaten0\"; did you mean "
            "\"flatten0\"?");
  EXPECT_NE(problems_of(with(minimal_spec, "[flatten,", "[{flatten: {}, inputs: [linear1]},"))
                .find("no earlier layer"),
            std::string::npos);
}

TEST(validate, padding_of_a_pool_is_at_most_half_its_kernel) {
  EXPECT_EQ(
      problems_of(with(minimal_spec, "[flatten,", "[{max_pool2d: {kernel_size: 2, padding: 1}}, flatten,")),
      "");
  EXPECT_EQ(
      problems_of(with(minimal_spec, "[flatten,", "[{max_pool2d: {kernel_size: 3, padding: 2}}, flatten,")),
      "job.yaml:3: model.layers[0].max_pool2d.padding: 2 is more than half of kernel_size 3");
}

} // namespace
} // namespace dlrun::job
