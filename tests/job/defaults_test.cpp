#include "job/defaults.hpp"

#include "tests/job/spec_text.hpp"

#include <gtest/gtest.h>

namespace dlrun::job {
namespace {

using test::minimal_spec, test::parse, test::with;

TEST(defaults, fill_everything_that_has_one) {
  const auto spec = parse(with(minimal_spec, "cluster: {workers: 2}\n", ""));
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->name(), "job");
  EXPECT_TRUE(spec->model().loss().cross_entropy().has_label_smoothing());
  EXPECT_EQ(spec->model().loss().cross_entropy().label_smoothing(), 0);
  ASSERT_EQ(spec->model().metrics_size(), 1);
  EXPECT_TRUE(spec->model().metrics(0).has_accuracy());
  EXPECT_EQ(spec->data().train().format(), "idx");
  EXPECT_EQ(spec->data().train().normalize().mean(0), 0);
  EXPECT_EQ(spec->data().train().normalize().std(0), 1);
  EXPECT_FALSE(spec->data().has_validation());
  EXPECT_EQ(spec->train().epochs(), 1);
  EXPECT_EQ(spec->train().microbatch_size(), 32);
  EXPECT_EQ(spec->train().microbatches_per_step(), 4);
  EXPECT_EQ(spec->train().mode(), "sync");
  EXPECT_EQ(spec->train().seed(), 1U);
  EXPECT_TRUE(spec->train().shuffle());
  EXPECT_EQ(spec->train().optimizer().sgd().momentum(), 0);
  EXPECT_TRUE(spec->train().optimizer().sgd().has_momentum());
  EXPECT_EQ(spec->cluster().workers(), 2);
  EXPECT_EQ(spec->cluster().ps_shards(), 2);
  EXPECT_EQ(spec->cluster().threads_per_worker(), 1);
  EXPECT_EQ(spec->cluster().placement(), "processes");
  EXPECT_EQ(spec->cluster().restart().intensity(), 10);
  EXPECT_EQ(spec->cluster().restart().period_s(), 60);
  EXPECT_EQ(spec->observability().prometheus_port(), 0) << "none";
  EXPECT_FALSE(spec->observability().tensorboard());
  EXPECT_EQ(spec->observability().log_format(), "text");
}

TEST(defaults, of_metrics_go_with_the_loss) {
  for (const char* loss : {"mse", "l1", "huber"})
    EXPECT_TRUE(parse(minimal_spec, {std::string("model.loss=") + loss})->model().metrics(0).has_mae())
        << loss;
  EXPECT_TRUE(parse(minimal_spec, {"model.loss=bce_with_logits"})->model().metrics(0).has_accuracy());
  const auto chosen = parse(minimal_spec, {"model.metrics=[{top_k: {}}]"});
  ASSERT_TRUE(chosen) << chosen.error().message;
  ASSERT_EQ(chosen->model().metrics_size(), 1);
  EXPECT_EQ(chosen->model().metrics(0).top_k().k(), 5);
}

TEST(defaults, of_newer_layers_are_those_of_pytorch) {
  const auto spec = parse(with(minimal_spec, "[flatten,",
                               "[{avg_pool2d: {kernel_size: 3}}, {conv_transpose2d: {out_channels: 4, "
                               "kernel_size: 3}}, gelu, leaky_relu, "
                               "layer_norm, {group_norm: {num_groups: 2}}, flatten, {select: {first: 0}},"));
  ASSERT_TRUE(spec) << spec.error().message;
  const auto& layers = spec->model().layers();
  EXPECT_EQ(layers[0].avg_pool2d().stride(), 3) << "the kernel size";
  EXPECT_TRUE(layers[0].avg_pool2d().count_include_pad());
  EXPECT_EQ(layers[1].conv_transpose2d().stride(), 1);
  EXPECT_EQ(layers[1].conv_transpose2d().output_padding(), 0);
  EXPECT_TRUE(layers[1].conv_transpose2d().bias());
  EXPECT_EQ(layers[2].gelu().approximate(), "none");
  EXPECT_EQ(layers[3].leaky_relu().negative_slope(), 0.01);
  EXPECT_EQ(layers[4].layer_norm().eps(), 1e-5);
  EXPECT_EQ(layers[4].layer_norm().normalized_shape_size(), 0) << "the shape of the record";
  EXPECT_TRUE(layers[4].layer_norm().elementwise_affine());
  EXPECT_EQ(layers[5].group_norm().eps(), 1e-5);
  EXPECT_EQ(layers[7].select().count(), 1);
}

TEST(defaults, of_layers_and_optimizers_are_those_of_pytorch) {
  const auto spec = parse(
      with(with(minimal_spec, "[flatten,",
                "[{conv2d: {out_channels: 4, kernel_size: 3}}, {max_pool2d: {kernel_size: 3}}, dropout, "
                "batch_norm, flatten,"),
           "sgd: {lr: 0.05}", "adam"));
  ASSERT_TRUE(spec) << spec.error().message;
  const auto& layers = spec->model().layers();
  EXPECT_EQ(layers[0].conv2d().stride(), 1);
  EXPECT_EQ(layers[0].conv2d().padding(), 0);
  EXPECT_TRUE(layers[0].conv2d().bias());
  EXPECT_EQ(layers[1].max_pool2d().stride(), 3) << "the kernel size";
  EXPECT_EQ(layers[1].max_pool2d().padding(), 0);
  EXPECT_EQ(layers[2].dropout().p(), 0.5);
  EXPECT_EQ(layers[3].batch_norm().eps(), 1e-5);
  EXPECT_EQ(layers[3].batch_norm().momentum(), 0.1);
  EXPECT_TRUE(layers[3].batch_norm().affine());
  EXPECT_TRUE(layers[5].linear().bias());
  const auto& adam = spec->train().optimizer().adam();
  EXPECT_EQ(adam.lr(), 1e-3);
  EXPECT_EQ(adam.betas(0), 0.9);
  EXPECT_EQ(adam.betas(1), 0.999);
  EXPECT_EQ(adam.eps(), 1e-8);
  EXPECT_EQ(adam.weight_decay(), 0);
  EXPECT_FALSE(adam.amsgrad());
  const auto optimizer = [](const std::string& kind) {
    return parse(with(minimal_spec, "sgd: {lr: 0.05}", kind)).value().train().optimizer();
  };
  EXPECT_EQ(optimizer("adamw").adamw().weight_decay(), 1e-2);
  EXPECT_EQ(optimizer("adamw").adamw().betas(1), 0.999);
  EXPECT_EQ(optimizer("adagrad").adagrad().lr(), 1e-2);
  EXPECT_EQ(optimizer("adagrad").adagrad().eps(), 1e-10);
  EXPECT_EQ(optimizer("adagrad").adagrad().initial_accumulator_value(), 0);
  EXPECT_EQ(optimizer("rmsprop").rmsprop().lr(), 1e-2);
  EXPECT_EQ(optimizer("rmsprop").rmsprop().alpha(), 0.99);
  EXPECT_EQ(optimizer("rmsprop").rmsprop().eps(), 1e-8);
  EXPECT_FALSE(optimizer("rmsprop").rmsprop().centered());
}

TEST(defaults, of_the_learning_rate_are_a_constant_and_those_of_pytorch) {
  const auto schedule = [](const std::string& text) {
    return parse(minimal_spec, text.empty() ? std::vector<std::string>{}
                                            : std::vector<std::string>{"train.lr_schedule=" + text})
        .value()
        .train();
  };
  EXPECT_TRUE(schedule("").lr_schedule().has_constant());
  EXPECT_EQ(schedule("").lr_schedule().unit(), "step");
  EXPECT_EQ(schedule("").lr_schedule().warmup_steps(), 0);
  EXPECT_EQ(schedule("").lr_schedule().start_factor(), 1.0 / 3);
  EXPECT_FALSE(schedule("").has_clip_value());
  EXPECT_FALSE(schedule("").has_clip_norm());
  EXPECT_EQ(schedule("{step: {step_size: 3}}").lr_schedule().step().gamma(), 0.1);
  EXPECT_EQ(schedule("{multi_step: {milestones: [3, 7]}}").lr_schedule().multi_step().gamma(), 0.1);
  EXPECT_EQ(schedule("cosine").lr_schedule().cosine().eta_min(), 0);
  EXPECT_FALSE(schedule("cosine").lr_schedule().cosine().has_t_max()) << "the whole training";
  const auto cycle = schedule("{one_cycle: {max_lr: 1}, unit: epoch}").lr_schedule();
  EXPECT_EQ(cycle.unit(), "epoch");
  EXPECT_EQ(cycle.one_cycle().pct_start(), 0.3);
  EXPECT_EQ(cycle.one_cycle().div_factor(), 25);
  EXPECT_EQ(cycle.one_cycle().final_div_factor(), 1e4);
  EXPECT_EQ(cycle.one_cycle().anneal_strategy(), "cos");
}

TEST(defaults, layers_are_called_by_kind_and_position) {
  const auto spec = parse(with(minimal_spec, "[flatten, {linear: {out_features: 10}}]",
                               "[flatten, {linear: {out_features: 10}, name: head}, relu]"));
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->model().layers(0).name(), "flatten0");
  EXPECT_EQ(spec->model().layers(1).name(), "head");
  EXPECT_EQ(spec->model().layers(2).name(), "relu2");
}

TEST(defaults, leave_what_was_written) {
  spec::JobSpec spec;
  spec.set_name("kept");
  spec.mutable_train()->set_epochs(9);
  spec.mutable_train()->set_seed(0);
  fill_defaults(spec, "other");
  EXPECT_EQ(spec.name(), "kept");
  EXPECT_EQ(spec.train().epochs(), 9);
  EXPECT_EQ(spec.train().seed(), 0U);
  const auto once = spec.SerializeAsString();
  fill_defaults(spec, "other");
  EXPECT_EQ(spec.SerializeAsString(), once);
}

TEST(defaults, a_job_name_from_any_file_name_is_a_valid_one) {
  EXPECT_EQ(default_job_name("/x/cnn.yaml"), "cnn");
  EXPECT_EQ(default_job_name("a b/c d.yaml"), "c-d");
  EXPECT_EQ(default_job_name("--x.yaml"), "x");
  EXPECT_EQ(default_job_name("\xc3\xa4\xc3\xb6.yaml"), "job");
  EXPECT_EQ(default_job_name(""), "job");
  EXPECT_EQ(default_job_name(std::string(300, 'x') + ".yaml").size(), 100U);
}

} // namespace
} // namespace dlrun::job
