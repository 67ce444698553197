#include "job/validate.hpp"

#include "tests/job/spec_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

namespace dlrun::job {
namespace {

using test::minimal_spec, test::parse, test::problems_of, test::with;

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

/// Of a section with a key that there is none of, no other value is looked at.
TEST(validate, a_word_that_no_key_has_beside_an_unknown_key_is_no_broken_invariant) {
  EXPECT_THAT(problems_of(minimal_spec, {"cluster={device: abacus, gpus: [0], fast: yes}"}),
              testing::HasSubstr("unknown key \"fast\""));
  EXPECT_THAT(
      problems_of(minimal_spec, {"durability={log: sometimes, fast: yes}", "train.evaluate_every=5 steps",
                                 "cluster.journal={etcd: {endpoints: a:1}}"}),
      testing::HasSubstr("unknown key \"fast\""));
  EXPECT_THAT(problems_of(minimal_spec, {"data.train={format: csv, records: r, targets: hits, fast: yes, "
                                         "csv: {target: t, columns: [{column: c, type: word, fast: yes}]}}"}),
              testing::HasSubstr("unknown key \"fast\""));
}

TEST(validate, what_belongs_to_a_weights_file_needs_one) {
  const auto sha = "train.init_sha256='" + std::string(64, 'a') + "'";
  EXPECT_EQ(problems_of(minimal_spec, {"train.init_from=w", "train.init_strict=false", sha}), "");
  EXPECT_NE(problems_of(minimal_spec, {"train.init_strict=false"}).find("train.init_from, which is missing"),
            std::string::npos);
  EXPECT_NE(problems_of(minimal_spec, {sha}).find("train.init_from, which is missing"), std::string::npos);
  for (const char* digest : {"abc", "G", ""})
    EXPECT_NE(
        problems_of(minimal_spec, {"train.init_from=w", std::string{"train.init_sha256='"} + digest + "'"})
            .find("expected 64 hexadecimal digits"),
        std::string::npos)
        << digest;
}

TEST(validate, the_number_of_workers_lies_between_its_bounds) {
  EXPECT_EQ(problems_of(minimal_spec, {"cluster={workers: 2, workers_min: 2, workers_max: 2}"}), "");
  EXPECT_THAT(problems_of(minimal_spec, {"cluster={workers: 2, workers_min: 3}"}),
              testing::HasSubstr("cluster.workers_min: 3 is above cluster.workers, which is 2"));
  EXPECT_THAT(problems_of(minimal_spec, {"cluster={workers: 2, workers_max: 1}"}),
              testing::HasSubstr("cluster.workers_max: 1 is below cluster.workers, which is 2"));
}

TEST(validate, gpus_are_named_once_and_for_a_job_that_may_use_them) {
  EXPECT_EQ(problems_of(minimal_spec, {"cluster={gpus: [3, 0]}"}), "");
  EXPECT_EQ(problems_of(minimal_spec, {"cluster={device: cuda, gpus: 1}"}), "");
  EXPECT_THAT(problems_of(minimal_spec, {"cluster={gpus: [0, 2, 0]}"}),
              testing::HasSubstr("cluster.gpus[2]: GPU 0 is named twice"));
  EXPECT_THAT(problems_of(minimal_spec, {"cluster={device: cpu, gpus: [0]}"}),
              testing::AllOf(
                  testing::HasSubstr("cluster.gpus: names GPUs, but with cluster.device: cpu none is used"),
                  testing::HasSubstr("leave this out")));
  EXPECT_THAT(problems_of(minimal_spec, {"cluster={device: gpu, gpus: [0]}"}),
              testing::HasSubstr("cluster.device: expected one of auto, cpu, cuda"));
}

TEST(validate, other_precisions_than_fp32_are_of_a_job_that_may_use_gpus) {
  for (const std::string precision : {"tf32", "bf16"}) {
    for (const auto* device : {"auto", "cuda"})
      EXPECT_EQ(problems_of(minimal_spec,
                            {"train.precision=" + precision, std::string{"cluster.device="} + device}),
                "");
    EXPECT_THAT(problems_of(minimal_spec, {"train.precision=" + precision, "cluster.device=cpu"}),
                testing::AllOf(testing::HasSubstr("train.precision: " + precision +
                                                  " is a precision of GPUs, and with cluster.device: cpu "
                                                  "none is used"),
                               testing::HasSubstr("leave this out, or set cluster.device: cuda")));
  }
  EXPECT_EQ(problems_of(minimal_spec, {"train.precision=fp32", "cluster.device=cpu"}), "");
  for (const auto* unknown : {"fp16", "half", "TF32"})
    EXPECT_THAT(problems_of(minimal_spec, {std::string{"train.precision="} + unknown, "cluster.device=cpu"}),
                testing::HasSubstr("train.precision: expected one of fp32, tf32, bf16"));
}

TEST(validate, metrics_for_other_hosts_have_a_port_an_address_and_three_files) {
  const std::string files = "certificate_file: c, key_file: k, ca_file: a";
  const auto problems = [](const std::string& tls, const char* port = "9464") {
    return problems_of(minimal_spec, {"observability={prometheus_port: " + std::string{port} +
                                      ", prometheus_tls: {" + tls + "}}"});
  };
  EXPECT_EQ(problems("address: 0.0.0.0, " + files), "");
  EXPECT_THAT(problems("address: 10.0.0.1, " + files, "0"),
              testing::HasSubstr("observability.prometheus_tls: says how prometheus_port is served"));
  for (const char* address : {"::1", "host", "10.0.0.1:80", "10.0.0"})
    EXPECT_THAT(problems("address: \"" + std::string{address} + "\", " + files),
                testing::HasSubstr("observability.prometheus_tls.address: expected the IPv4 address"));
  EXPECT_THAT(problems("address: 10.0.0.1, certificate_file: c, key_file: k"),
              testing::HasSubstr("observability.prometheus_tls.ca_file"));
}

TEST(validate, what_is_shown_to_others_is_a_port_a_truth_and_a_format) {
  EXPECT_EQ(problems_of(minimal_spec, {"observability={prometheus_port: 65535, tensorboard: true, "
                                       "log_format: json}"}),
            "");
  for (const char* port : {"-1", "65536"})
    EXPECT_THAT(problems_of(minimal_spec, {std::string{"observability.prometheus_port="} + port}),
                testing::HasSubstr("observability.prometheus_port: expected an integer from 0 to 65535"));
  EXPECT_THAT(problems_of(minimal_spec, {"observability.log_format=jsn"}),
              testing::HasSubstr("did you mean \"json\"?"));
  EXPECT_THAT(problems_of(minimal_spec, {"observability.tensorbord=true"}),
              testing::HasSubstr("did you mean \"observability.tensorboard\"?"));
}

const std::string with_validation =
    with(minimal_spec, "labels: labels}}", "labels: labels}, validation: {records: images, labels: labels}}");

TEST(validate, what_validation_has_from_training_is_told_once) {
  const auto text =
      with(minimal_spec, "{train: {records: images, labels: labels}}",
           "{train: {format: csv, records: t.csv, csv: {target: y, delimiter: ;, classes: [a, a]}}, "
           "validation: {records: v.csv}}");
  EXPECT_EQ(problems_of(text),
            "job.yaml:4: data.train.csv.delimiter: expected one of comma, semicolon, tab, bar, found \";\"\n"
            "job.yaml:4: data.train.csv.classes: \"a\" is there twice");
  EXPECT_THAT(problems_of(text, {"data.validation.csv.delimiter=:"}),
              testing::HasSubstr("data.validation.csv.delimiter: expected one of"));
}

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
  EXPECT_EQ(
      problems_of(with(minimal_spec, "[flatten,", "[{avg_pool2d: {kernel_size: 3, padding: 2}}, flatten,")),
      "job.yaml:3: model.layers[0].avg_pool2d.padding: 2 is more than half of kernel_size 3");
}

TEST(validate, output_padding_is_below_the_stride) {
  const auto grown = [](const std::string& arguments) {
    return problems_of(
        with(minimal_spec, "[flatten,",
             "[{conv_transpose2d: {out_channels: 2, kernel_size: 3" + arguments + "}}, flatten,"));
  };
  EXPECT_EQ(grown(", stride: 2, output_padding: 1"), "");
  EXPECT_EQ(grown(", output_padding: 1"),
            "job.yaml:3: model.layers[0].conv_transpose2d.output_padding: 1 is not below stride 1");
}

TEST(validate, a_layer_reads_as_many_inputs_as_its_kind_takes) {
  const auto joined = [](const std::string& layer) {
    return problems_of(with(minimal_spec, "[flatten,", "[{flatten: {}, name: a}, " + layer + ","));
  };
  EXPECT_EQ(joined("{add: {}, inputs: [a, a]}"), "");
  EXPECT_EQ(joined("add"), "job.yaml:3: model.layers[1].inputs: add takes 2 to 16 inputs, found 1, the layer "
                           "before; name them all");
  EXPECT_EQ(joined("{concat: {}, inputs: [a]}"),
            "job.yaml:3: model.layers[1].inputs: concat takes 2 to 16 inputs, found 1");
  EXPECT_EQ(joined("{relu: {}, inputs: [a, input]}"),
            "job.yaml:3: model.layers[1].inputs: relu takes one input, found 2");
}

TEST(validate, nesterov_needs_momentum_and_no_dampening) {
  const auto with_sgd = [](const std::string& arguments) {
    return problems_of(with(minimal_spec, "{lr: 0.05}", "{lr: 0.05, nesterov: true" + arguments + "}"));
  };
  EXPECT_EQ(with_sgd(", momentum: 0.9"), "");
  EXPECT_EQ(with_sgd(""),
            "job.yaml:5: train.optimizer.sgd.nesterov: needs a momentum above 0 and a dampening of 0, found "
            "momentum 0, dampening 0");
  EXPECT_NE(with_sgd(", momentum: 0.9, dampening: 0.1").find("dampening 0.1"), std::string::npos);
}

TEST(validate, milestones_of_a_schedule_ascend) {
  const auto with_milestones = [](const std::string& list) {
    return problems_of(minimal_spec, {"train.lr_schedule={multi_step: {milestones: " + list + "}}"});
  };
  EXPECT_EQ(with_milestones("[3, 7, 8]"), "");
  EXPECT_NE(with_milestones("[3, 8, 7]")
                .find("train.lr_schedule.multi_step.milestones: expected each larger "
                      "than the one before, found 8 before 7"),
            std::string::npos)
      << with_milestones("[3, 8, 7]");
  EXPECT_NE(with_milestones("[3, 3]").find("found 3 before 3"), std::string::npos);
}

TEST(validate, the_number_of_stores_is_a_count_from_one_on_or_left_open) {
  for (const auto* count : {"auto", "1", "3", "100"})
    EXPECT_EQ(problems_of(minimal_spec, {std::string("durability.replicas=") + count}), "") << count;
  for (const auto* other : {"0", "-1", "101", "2.5", "two", "2 hosts"})
    EXPECT_THAT(problems_of(minimal_spec, {std::string("durability.replicas=") + other}),
                testing::HasSubstr("durability.replicas: expected auto, or an integer from 1 to 100"))
        << other;
}

TEST(validate, a_second_copy_takes_something_that_is_kept_and_the_same_bits_on_all_hosts) {
  for (const auto* log : {"auto", "every_step", "snapshots"})
    EXPECT_EQ(problems_of(minimal_spec, {"durability.replicas=2", std::string("durability.log=") + log}), "")
        << log;
  EXPECT_THAT(problems_of(minimal_spec, {"durability.replicas=2", "durability.log=off"}),
              testing::HasSubstr("durability.replicas: with durability.log: off nothing is kept"));
  EXPECT_THAT(problems_of(minimal_spec, {"durability.replicas=2", "cluster.determinism=relaxed"}),
              testing::HasSubstr("leave cluster.determinism at strict"));
  for (const auto* other : {"durability.log=off", "cluster.determinism=relaxed"})
    for (const auto* one : {"durability.replicas=auto", "durability.replicas=1"})
      EXPECT_EQ(problems_of(minimal_spec, {one, other}), "") << one << ", " << other;
}

} // namespace
} // namespace dlrun::job
