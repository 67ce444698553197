#include "job/spec_reader.hpp"

#include "tests/data/files.hpp"
#include "tests/job/spec_text.hpp"

#include <gtest/gtest.h>

namespace dlrun::job {
namespace {

using test::minimal_spec, test::parse, test::problems_of, test::with;

TEST(spec_reader, reads_a_whole_specification) {
  const auto spec = parse(R"(
name: my-job
model:
  input: [1, 28, 28]
  layers:
    - {conv2d: {out_channels: 32, kernel_size: 3, padding: 1}, name: first}
    - relu
    - max_pool2d: {kernel_size: 2, stride: 1}
    - dropout: {p: .25}
    - batch_norm:
    - flatten: {}
    - {linear: {out_features: 10, bias: false}, inputs: [flatten5]}
  loss: cross_entropy
data:
  train: {format: idx, records: a/images, labels: "/abs/labels", normalize: {mean: 0.5, std: 2}}
  validation: {records: ../images, labels: labels}
train: {epochs: 5, microbatch_size: 16, microbatches_per_step: 7, optimizer: {adam: {lr: 1e-3, betas: [0.8, 0.99]}}, seed: 18446744073709551615, shuffle: false}
cluster: {workers: 3, ps_shards: 1, threads_per_worker: 2, placement: threads, restart: {intensity: 0, period_s: 1.5}}
)");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->name(), "my-job");
  ASSERT_EQ(spec->model().layers_size(), 7);
  EXPECT_EQ(spec->model().layers(0).name(), "first");
  EXPECT_EQ(spec->model().layers(0).conv2d().out_channels(), 32);
  EXPECT_TRUE(spec->model().layers(1).has_relu());
  EXPECT_EQ(spec->model().layers(2).max_pool2d().stride(), 1);
  EXPECT_EQ(spec->model().layers(3).dropout().p(), 0.25);
  EXPECT_TRUE(spec->model().layers(4).has_batch_norm());
  EXPECT_FALSE(spec->model().layers(6).linear().bias());
  EXPECT_EQ(spec->model().layers(6).inputs(0), "flatten5");
  EXPECT_EQ(spec->data().train().records(), "/base/a/images");
  EXPECT_EQ(spec->data().train().labels(), "/abs/labels");
  EXPECT_EQ(spec->data().validation().records(), "/images");
  EXPECT_EQ(spec->train().optimizer().adam().betas(1), 0.99);
  EXPECT_EQ(spec->train().seed(), 18446744073709551615U);
  EXPECT_FALSE(spec->train().shuffle());
  EXPECT_EQ(spec->cluster().restart().period_s(), 1.5);
}

TEST(spec_reader, an_unknown_key_names_file_line_key_and_the_nearest_valid_one) {
  EXPECT_EQ(problems_of(with(minimal_spec, "workers: 2", "worker: 2")),
            "job.yaml:6: cluster: unknown key \"worker\"; did you mean \"workers\"?");
  EXPECT_EQ(problems_of(with(minimal_spec, "out_features: 10}", "out_features: 10, bais: true}")),
            "job.yaml:3: model.layers[1].linear: unknown key \"bais\"; did you mean \"bias\"?");
  EXPECT_EQ(problems_of(minimal_spec + "colour: red\n"),
            "job.yaml:7: unknown key \"colour\"; the nearest is \"model\", valid are name, model, data, "
            "train, cluster, durability, observability");
}

TEST(spec_reader, a_loss_and_metrics_are_written_as_a_kind_or_with_arguments) {
  const auto spec =
      parse(with(minimal_spec, "data:", R"(  loss: {cross_entropy: {label_smoothing: 0.1, weight: [1, 2]}}
  metrics: [accuracy, {top_k: {k: 3}}, {precision: }]
data:)"));
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->model().loss().cross_entropy().label_smoothing(), 0.1);
  EXPECT_EQ(spec->model().loss().cross_entropy().weight_size(), 2);
  ASSERT_EQ(spec->model().metrics_size(), 3);
  EXPECT_EQ(spec->model().metrics(1).top_k().k(), 3);
  EXPECT_EQ(spec->model().metrics(2).precision().threshold(), 0.5);
  EXPECT_EQ(parse(minimal_spec, {"model.loss.huber.delta=2"})->model().loss().huber().delta(), 2);
}

TEST(spec_reader, a_loss_or_metric_that_is_none_is_refused) {
  EXPECT_EQ(problems_of(minimal_spec, {"model.loss=cross_entropie"}),
            "--set model.loss=cross_entropie: model.loss: unknown \"cross_entropie\"; did you mean "
            "\"cross_entropy\"?");
  EXPECT_EQ(problems_of(minimal_spec, {"model.loss={mse: {}, l1: {}}"}),
            "--set model.loss={mse: {}, l1: {}}: model.loss: both \"mse\" and \"l1\"; choose one");
  EXPECT_EQ(
      problems_of(minimal_spec, {"model.loss={cross_entropy: {label_smoothing: 2}}"}),
      "--set model.loss={cross_entropy: {label_smoothing: 2}}: model.loss.cross_entropy.label_smoothing: "
      "expected a number from 0 to 1, found 2");
  EXPECT_EQ(
      problems_of(minimal_spec, {"model.loss={huber: {delta: 0}}"}),
      "--set model.loss={huber: {delta: 0}}: model.loss.huber.delta: expected a number above 0, at most "
      "1000000, found 0");
  EXPECT_EQ(
      problems_of(minimal_spec, {"model.metrics=[acuracy]"}),
      "--set model.metrics=[acuracy]: model.metrics[0]: unknown \"acuracy\"; did you mean \"accuracy\"?");
}

TEST(spec_reader, an_unknown_layer_names_the_nearest) {
  EXPECT_EQ(problems_of(with(minimal_spec, "[flatten,", "[flaten,")),
            "job.yaml:3: model.layers[0]: unknown \"flaten\"; did you mean \"flatten\"?");
  EXPECT_EQ(problems_of(with(minimal_spec, "{linear:", "{lienar:")),
            "job.yaml:3: model.layers[1]: unknown key \"lienar\"; did you mean \"linear\"?");
}

TEST(spec_reader, a_key_written_elsewhere_is_told_where_it_belongs) {
  EXPECT_EQ(problems_of(with(minimal_spec, "train: {optimizer", "train: {momentum: 0.9, optimizer")),
            "job.yaml:5: train: unknown key \"momentum\"; did you mean \"train.optimizer.sgd.momentum\"?");
}

struct wrong_value {
  std::string from, to, problem;
};

void expect_problems(const std::vector<wrong_value>& cases) {
  for (const auto& wrong : cases)
    EXPECT_EQ(problems_of(with(minimal_spec, wrong.from, wrong.to)), wrong.problem);
}

TEST(spec_reader, wrong_types_and_impossible_values_state_what_was_expected) {
  expect_problems({
      {"workers: 2", "workers: two",
       "job.yaml:6: cluster.workers: expected an integer from 1 to 1024, found \"two\""},
      {"workers: 2", "workers: \"2\"",
       "job.yaml:6: cluster.workers: expected an integer from 1 to 1024, found \"2\" in quotes"},
      {"workers: 2", "workers: 0",
       "job.yaml:6: cluster.workers: expected an integer from 1 to 1024, found 0"},
      {"workers: 2", "workers: -3",
       "job.yaml:6: cluster.workers: expected an integer from 1 to 1024, found -3"},
      {"workers: 2", "workers: 1025",
       "job.yaml:6: cluster.workers: expected an integer from 1 to 1024, found 1025"},
      {"workers: 2", "workers: 1.5",
       "job.yaml:6: cluster.workers: expected an integer from 1 to 1024, found \"1.5\""},
      {"workers: 2", "workers: .nan",
       "job.yaml:6: cluster.workers: expected an integer from 1 to 1024, found \".nan\""},
      {"workers: 2", "workers: 99999999999999999999",
       "job.yaml:6: cluster.workers: expected an integer from 1 to 1024, found \"99999999999999999999\""},
      {"workers: 2",
       "workers:", "job.yaml:6: cluster.workers: expected an integer from 1 to 1024, found nothing"},
      {"workers: 2", "workers: [2]",
       "job.yaml:6: cluster.workers: expected an integer from 1 to 1024, found a list"},
      {"workers: 2", "ps_shards: 257",
       "job.yaml:6: cluster.ps_shards: expected an integer from 1 to 256, found 257"},
      {"workers: 2", "placement: process",
       "job.yaml:6: cluster.placement: expected one of processes, threads, found \"process\"; did you mean "
       "\"processes\"?"},
      {"workers: 2", "restart: {period_s: 0}",
       "job.yaml:6: cluster.restart.period_s: expected a number from 0.001 to 31536000, found 0"},
      {"workers: 2", "restart: {period_s: .inf}",
       "job.yaml:6: cluster.restart.period_s: expected a number from 0.001 to 31536000, found \".inf\""},
  });
}

TEST(spec_reader, wrong_values_of_training_name_their_key) {
  expect_problems({
      {"lr: 0.05", "lr: nan",
       "job.yaml:5: train.optimizer.sgd.lr: expected a number from 0 to 1000000, found \"nan\""},
      {"lr: 0.05", "lr: -0.1",
       "job.yaml:5: train.optimizer.sgd.lr: expected a number from 0 to 1000000, found -0.1"},
      {"lr: 0.05", "lr: 1e999",
       "job.yaml:5: train.optimizer.sgd.lr: expected a number from 0 to 1000000, found \"1e999\""},
      {"train: {optimizer", "train: {seed: -1, optimizer",
       "job.yaml:5: train.seed: expected an integer from 0 to 18446744073709551615, found \"-1\""},
      {"train: {optimizer", "train: {shuffle: yes, optimizer",
       "job.yaml:5: train.shuffle: expected true or false, found \"yes\""},
      {"train: {optimizer", "train: {mode: async, optimizer",
       "job.yaml:5: train.mode: expected \"sync\", found \"async\"; did you mean \"sync\"?"},
      {"train: {optimizer", "train: {epochs: 0, optimizer",
       "job.yaml:5: train.epochs: expected an integer from 1 to 1000000, found 0"},
      {"train: {optimizer", "train: {microbatches_per_step: 4097, optimizer",
       "job.yaml:5: train.microbatches_per_step: expected an integer from 1 to 4096, found 4097"},
      {"sgd: {lr: 0.05}", "adam: {betas: [0.9]}",
       "job.yaml:5: train.optimizer.adam.betas: expected 2 values, found 1"},
      {"sgd: {lr: 0.05}", "adam: {betas: [0.9, 1]}",
       "job.yaml:5: train.optimizer.adam.betas[1]: expected a number from 0 to below 1, found 1"},
      {"sgd: {lr: 0.05}", "adam: {betas: 0.9}",
       "job.yaml:5: train.optimizer.adam.betas: expected a list ([...]), each value a number from 0 to below "
       "1; found \"0.9\""},
      {"{sgd: {lr: 0.05}}", "sgd",
       "job.yaml:5: train.optimizer.sgd.lr: is missing; expected a number from 0 to 1000000"},
      {"{sgd: {lr: 0.05}}", "{}",
       "job.yaml:5: train.optimizer: expected one of sgd, adam, adamw, adagrad, rmsprop, found none"},
      {"sgd: {lr: 0.05}", "sgd: {lr: 1}, adam: {}",
       "job.yaml:5: train.optimizer: both \"sgd\" and \"adam\"; choose one"},
      {"sgd: {lr: 0.05}", "sgd: 0.05",
       "job.yaml:5: train.optimizer.sgd: expected keys (lr, momentum, dampening, weight_decay, nesterov), "
       "found "
       "\"0.05\""},
  });
}

TEST(spec_reader, wrong_values_of_schedules_and_clipping_name_their_key) {
  const auto schedule = [](const std::string& text) {
    return "train: {lr_schedule: " + text + ", optimizer";
  };
  expect_problems({
      {"train: {optimizer", schedule("{}"),
       "job.yaml:5: train.lr_schedule: expected one of constant, step, multi_step, exponential, cosine, "
       "one_cycle, found none"},
      {"train: {optimizer", schedule("cosinus"),
       "job.yaml:5: train.lr_schedule: unknown \"cosinus\"; did you mean \"cosine\"?"},
      {"train: {optimizer", schedule("step"),
       "job.yaml:5: train.lr_schedule.step.step_size: is missing; expected an integer from 1 to 1000000000"},
      {"train: {optimizer", schedule("{cosine: {}, unit: day}"),
       "job.yaml:5: train.lr_schedule.unit: expected one of step, epoch, found \"day\""},
      {"train: {optimizer", schedule("{one_cycle: {max_lr: 1, pct_start: 2}}"),
       "job.yaml:5: train.lr_schedule.one_cycle.pct_start: expected a number from 0 to 1, found 2"},
      {"train: {optimizer", schedule("{constant: {}, warmup_steps: -1}"),
       "job.yaml:5: train.lr_schedule.warmup_steps: expected an integer from 0 to 1000000000, found -1"},
      {"train: {optimizer", "train: {clip_norm: 0, optimizer",
       "job.yaml:5: train.clip_norm: expected a number above 0, found 0"},
      {"train: {optimizer", "train: {clip_value: -1, optimizer",
       "job.yaml:5: train.clip_value: expected a number above 0, found -1"},
  });
}

TEST(spec_reader, wrong_values_of_models_and_data_name_their_key) {
  expect_problems({
      {"[flatten,", "[{flatten: 3},",
       "job.yaml:3: model.layers[0].flatten: expected no arguments, found \"3\""},
      {"[flatten,", "[{dropout: {p: 1}},",
       "job.yaml:3: model.layers[0].dropout.p: expected a number from 0 to below 1, found 1"},
      {"[flatten,", "[{batch_norm: {eps: 0}},",
       "job.yaml:3: model.layers[0].batch_norm.eps: expected a number above 0, at most 1, found 0"},
      {"[1, 28, 28]", "[1, 0]", "job.yaml:2: model.input[1]: expected an integer from 1 to 1048576, found 0"},
      {"[1, 28, 28]", "[]",
       "job.yaml:2: model.input: is missing or empty; expected a list, each value an integer from 1 to "
       "1048576"},
      {"[1, 28, 28]", "[1, 1, 1, 1, 1]", "job.yaml:2: model.input: expected 1 to 4 values, found 5"},
      {"[1, 28, 28]", "784",
       "job.yaml:2: model.input: expected a list ([...]), each value an integer from 1 to 1048576; found "
       "\"784\""},
      {"records: images", "records: ''",
       "job.yaml:4: data.train.records: expected the path of a file, found \"\""},
      {", labels: labels", "", "job.yaml:4: data.train.labels: is missing; expected the path of a file"},
      {"model:", "name: ../evil\nmodel:",
       "job.yaml:1: name: expected a name of letters, digits, '.', '_', '-' that starts with a letter or "
       "digit (at most 100), "
       "found \"../evil\""},
  });
}

TEST(spec_reader, a_key_written_twice_names_both_lines) {
  EXPECT_EQ(problems_of(minimal_spec + "cluster: {workers: 3}\n"),
            "job.yaml:7: cluster: written twice, first on line 6");
  EXPECT_EQ(problems_of(with(minimal_spec, "workers: 2", "workers: 2, workers: 2")),
            "job.yaml:6: cluster.workers: written twice, first on line 6");
}

TEST(spec_reader, a_key_without_a_value_is_told_at_its_own_line) {
  const auto text = with(minimal_spec, "cluster: {workers: 2}", "cluster:\n  workers:\n\n\n  ps_shards: 2");
  EXPECT_EQ(problems_of(text),
            "job.yaml:7: cluster.workers: expected an integer from 1 to 1024, found nothing");
}

TEST(spec_reader, the_name_of_a_file_is_shown_on_one_line) {
  const auto read = parse_spec("train: {epocs: 3}", "a\nb\x1b.yaml", "/");
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, testing::HasSubstr("a\\nb\\x1b.yaml:1: train: unknown key"));
}

TEST(spec_reader, reports_all_problems_by_line) {
  const std::string text = R"(model:
  input: [1, 28, 28]
  layers: [flaten, {linear: {out_features: ten}}]
data: {train: {records: images}}
train: {epocs: 3, optimizer: {sgd: {lr: 0.05}}}
cluster: {workers: 0}
)";
  EXPECT_EQ(problems_of(text, {"train.seeed=3"}),
            "job.yaml:3: model.layers[0]: unknown \"flaten\"; did you mean \"flatten\"?\n"
            "job.yaml:3: model.layers[1].linear.out_features: expected an integer from 1 to 1048576, found "
            "\"ten\"\n"
            "job.yaml:4: data.train.labels: is missing; expected the path of a file\n"
            "job.yaml:5: train: unknown key \"epocs\"; did you mean \"epochs\"?\n"
            "job.yaml:6: cluster.workers: expected an integer from 1 to 1024, found 0\n"
            "--set train.seeed=3: train.seeed: no such key; did you mean \"train.seed\"?");
}

TEST(spec_reader, missing_sections_are_named) {
  EXPECT_EQ(
      problems_of("name: x\n"),
      "job.yaml:1: model: is missing; expected keys (input, layers, loss, metrics)\n"
      "job.yaml:1: data: is missing; expected keys (train, validation, memory_limit, share)\n"
      "job.yaml:1: train: is missing; expected keys (epochs, microbatch_size, "
      "microbatches_per_step, optimizer, lr_schedule, clip_value, clip_norm, mode, precision, seed, shuffle, "
      "skip, from, init_from, init_strict, init_sha256, evaluate_every, keep_best, early_stopping)");
}

TEST(spec_reader, reads_files_and_resolves_paths_against_their_folder) {
  const test::temporary_folder folder;
  const auto file = folder.write("my job!.yaml", {minimal_spec.begin(), minimal_spec.end()});
  const auto spec = read_spec(file);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->name(), "my-job-");
  EXPECT_EQ(spec->data().train().records(), (folder.path() / "images").string());
}

TEST(spec_reader, names_a_file_that_is_missing_or_no_file) {
  const auto missing = read_spec("/nowhere/job.yaml");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, error_code::bad_spec);
  EXPECT_EQ(missing.error().message, "/nowhere/job.yaml: no such file");
  EXPECT_EQ(read_spec("/").error().message, "/: not a file");
}

TEST(spec_reader, windows_line_ends_and_a_byte_order_mark_are_no_problem) {
  std::string text = "\xEF\xBB\xBF";
  for (const char c : minimal_spec) text += c == '\n' ? std::string("\r\n") : std::string(1, c);
  EXPECT_EQ(problems_of(text), "");
}

} // namespace
} // namespace dlrun::job
