#include "runtime/prepared_job.hpp"

#include "job/spec_reader.hpp"
#include "job/spec_writer.hpp"
#include "tests/data/files.hpp"
#include "tests/job/spec_text.hpp"
#include "weights/safetensors_writer.hpp"

#include <cmath>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::runtime {
namespace {

using test::counting;
using test::idx_bytes;
using test::with;
using testing::HasSubstr;

/// Ten records of 2 x 2 for a model of four inputs and three classes, in steps of four records.
class prepared_job_test : public testing::Test {
protected:
  prepared_job_test() {
    write_records("images", 10);
    write_labels("labels", {0, 1, 2, 0, 1, 2, 0, 1, 2, 0});
  }
  void write_records(const std::string& name, std::uint32_t count) const {
    folder.write(name, idx_bytes({count, 2, 2}, counting(count * 4)));
  }
  void write_labels(const std::string& name, const test::bytes& labels) const {
    folder.write(name, idx_bytes({static_cast<std::uint32_t>(labels.size())}, labels));
  }
  result<prepared_job> prepare(const std::vector<std::string>& overrides = {}) const {
    std::ofstream(folder.path() / "job.yaml") << text;
    return prepare_new_job(folder.path() / "job.yaml", overrides);
  }
  /// The job is refused with this code. @returns what is said.
  std::string refusal(error_code code, const std::vector<std::string>& overrides = {}) const {
    const auto job = prepare(overrides);
    if (job) return "";
    EXPECT_EQ(job.error().code, code) << job.error().message;
    return job.error().message;
  }
  std::string path(const std::string& name) const { return (folder.path() / name).string(); }

  test::temporary_folder folder;
  std::string text = R"(model:
  input: [4]
  layers: [{linear: {out_features: 3}}]
data: {train: {records: images, labels: labels}}
train: {epochs: 2, microbatch_size: 2, microbatches_per_step: 2, optimizer: {sgd: {lr: 0.1}}}
)";
};

TEST_F(prepared_job_test, counts_the_validation_records_that_are_trained_on) {
  EXPECT_EQ(prepare()->validation_records_trained_on, 0U);
  EXPECT_EQ(prepare({"data.validation.split=0.5"})->validation_records_trained_on, 0U);
  folder.write("others", idx_bytes({3, 2, 2}, {0, 1, 2, 3, 9, 9, 9, 9, 4, 5, 6, 7}));
  write_labels("other_labels", {0, 0, 2});
  text =
      with(text, "labels: labels}}", "labels: labels}, validation: {records: others, labels: other_labels}}");
  const auto job = prepare();
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->validation_records_trained_on, 1U);
}

TEST_F(prepared_job_test, evaluates_at_most_so_often_that_all_results_can_be_kept) {
  text = with(text, "labels: labels}}", "labels: labels}, validation: {records: images, labels: labels}}");
  EXPECT_TRUE(prepare({"train.evaluate_every=1 step"}));
  const std::vector<std::string> often{"train.evaluate_every=1 step", "train.epochs=5000"};
  EXPECT_THAT(refusal(error_code::bad_spec, often),
              HasSubstr("makes 15000 evaluations in 15000 steps; at most 10000: choose at least 2 steps"));
  EXPECT_TRUE(prepare({"train.evaluate_every=2 epochs", "train.epochs=5000"}));
}

TEST_F(prepared_job_test, refuses_more_ps_shards_than_there_are_blocks) {
  EXPECT_TRUE(prepare({"cluster.ps_shards=3"})) << "weight, bias, metrics";
  EXPECT_THAT(refusal(error_code::bad_spec, {"cluster.ps_shards=4"}),
              HasSubstr("cluster.ps_shards: 4 PS shards are more than the 3"));
}

TEST_F(prepared_job_test, refuses_a_quota_that_no_snapshot_fits_into) {
  EXPECT_THAT(refusal(error_code::bad_spec, {"durability.disk_quota=1B", "durability.log=snapshots"}),
              HasSubstr("durability.disk_quota: 1B has no room for a single snapshot"));
  EXPECT_TRUE(prepare({"durability.disk_quota=1B", "durability.log=off"})) << "nothing is kept";
  EXPECT_TRUE(prepare({"durability.disk_quota=1GB"}));
}

/// `dlrun validate` and `train` ask the same function.
TEST_F(prepared_job_test, refuses_to_compute_numbers_of_rows_that_bf16_does_not_have) {
  const auto said = [&](const std::string& before, int rows, const std::string& precision) {
    const auto job =
        prepare({"train.precision=" + precision, "cluster.device=cuda",
                 fmt::format("model.layers=[{}{{name: words, embedding: {{num_embeddings: {}, embedding_dim: "
                             "2}}}}, {{flatten: {{}}}}, {{linear: {{out_features: 3}}}}]",
                             before, rows)});
    return job ? std::string{} : job.error().message;
  };
  const std::string computed = "{relu: {}}, ", handed_on = "{select: {first: 1}}, {flatten: {}}, ";
  EXPECT_THAT(said(computed, 258, "bf16"),
              testing::AllOf(HasSubstr("train.precision: embedding 'words' has 258 rows"),
                             HasSubstr("let it read values of a record, or write tf32")));
  for (const auto& good : {said(computed, 257, "bf16"), said(computed, 258, "tf32"), said("", 258, "bf16"),
                           said(handed_on, 258, "bf16")})
    EXPECT_THAT(good, testing::Not(HasSubstr("train.precision")));
}

TEST_F(prepared_job_test, refuses_what_only_a_resumed_run_has) {
  EXPECT_THAT(refusal(error_code::bad_spec, {"train.from=1"}), HasSubstr("a run that is resumed"));
  EXPECT_THAT(refusal(error_code::bad_spec, {"train.skip=['0:1']"}), HasSubstr("a run that is resumed"));
}

TEST_F(prepared_job_test, goes_by_metrics_that_there_are) {
  text = with(text, "labels: labels}}", "labels: labels}, validation: {records: images, labels: labels}}");
  const std::string every = "train.evaluate_every=1 epoch";
  EXPECT_TRUE(prepare({every, "train.keep_best={metric: accuracy}", "train.early_stopping={}"}));
  EXPECT_THAT(
      refusal(error_code::bad_spec, {every, "train.keep_best={metric: mea}"}),
      HasSubstr(
          "train.keep_best.metric: nothing that is evaluated is called \"mea\"; there is loss, accuracy"));
  EXPECT_THAT(refusal(error_code::bad_spec, {every, "train.early_stopping={metric: f1}"}),
              HasSubstr("train.early_stopping.metric: "));
}

TEST_F(prepared_job_test, knows_what_there_is_to_train) {
  const auto job = prepare();
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->train_records, 10U);
  EXPECT_EQ(job->validation_records, 0U);
  EXPECT_EQ(job->steps, 6U) << "three an epoch, the last one of two records";
  EXPECT_EQ(job->parameter_count, 15U);
  EXPECT_TRUE(job->revisions.empty());
  EXPECT_EQ(job->spec.name(), "job");
}

TEST_F(prepared_job_test, overrides_count_before_anything_is_checked) {
  const auto job = prepare({"train.epochs=5", "name=other"});
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->steps, 15U);
  EXPECT_EQ(job->spec.name(), "other");
}

/// What roles read is what was checked here, whatever happens to the files meanwhile.
TEST_F(prepared_job_test, keeps_the_data_open_for_the_roles) {
  folder.write("labels.gz", test::gzip(idx_bytes({10}, {0, 1, 2, 0, 1, 2, 0, 1, 2, 0})));
  text = with(text, "labels: labels", "labels: labels.gz");
  const auto job = prepare();
  ASSERT_TRUE(job) << job.error().message;
  std::filesystem::remove(path("images"));
  std::filesystem::remove(path("labels.gz"));
  const auto context =
      common::make_job_context({.spec = job->spec, .train_records = job->train_records, .data = job->data});
  ASSERT_TRUE(context) << context.error().message;
  const auto data = common::open_dataset(**context, data::data_part::training);
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ((*data)->record_count(), 10U);
  EXPECT_EQ((*data)->class_count(), 3U);
}

TEST_F(prepared_job_test, a_specification_that_is_wrong_is_refused_with_its_line) {
  text = with(text, "sgd", "sdg");
  EXPECT_THAT(refusal(error_code::bad_spec), HasSubstr("job.yaml:5"));
}

TEST_F(prepared_job_test, a_model_that_makes_no_sense_is_refused_naming_the_layer) {
  text = with(text, "[{linear", "[{conv2d: {out_channels: 2, kernel_size: 3}, name: eyes}, {linear");
  EXPECT_THAT(refusal(error_code::bad_spec), HasSubstr("eyes"));
}

TEST_F(prepared_job_test, a_loss_that_compares_values_is_refused_for_class_numbers) {
  const auto said = refusal(error_code::bad_data, {"model.loss=mse"});
  EXPECT_THAT(said, HasSubstr("the target of a record has 1 values, but the model compares 3"));
  EXPECT_THAT(said, HasSubstr(path("labels")));
}

TEST_F(prepared_job_test, data_that_is_not_there_is_refused_naming_the_file) {
  EXPECT_THAT(refusal(error_code::bad_data, {"data.train.records=no-images"}), HasSubstr(path("no-images")));
  EXPECT_THAT(refusal(error_code::bad_data, {"data.train.labels=no-labels"}), HasSubstr(path("no-labels")));
}

TEST_F(prepared_job_test, data_that_does_not_fit_the_model_is_refused_with_the_way_out) {
  const auto shape = refusal(error_code::bad_data, {"model.input=[5]"});
  EXPECT_THAT(shape, HasSubstr(path("images")));
  EXPECT_THAT(shape, HasSubstr("set model.input"));
  const auto label = refusal(error_code::bad_data, {"model.layers[0].linear.out_features=2"});
  EXPECT_THAT(label, HasSubstr(path("labels")));
  EXPECT_THAT(label, HasSubstr("record 2 has label 2"));
}

TEST_F(prepared_job_test, a_step_has_at_most_as_many_microbatches_as_there_are_records) {
  EXPECT_TRUE(prepare({"train.microbatches_per_step=10"}));
  EXPECT_THAT(refusal(error_code::bad_spec, {"train.microbatches_per_step=11"}),
              HasSubstr("train.microbatches_per_step: 11 microbatches a step are more than the 10 records"));
}

TEST_F(prepared_job_test, parameters_that_do_not_fit_into_memory_are_refused) {
  const auto said = refusal(error_code::bad_spec, {"model.layers=[{linear: {out_features: 262144}}, "
                                                   "{linear: {out_features: 196608}}]"});
  EXPECT_THAT(said, HasSubstr("'linear1.weight'"));
  EXPECT_THAT(said, HasSubstr("192.0 GiB"));
}

TEST_F(prepared_job_test, data_that_does_not_fit_itself_is_refused_naming_both_files) {
  write_labels("labels", {0, 1, 2});
  const auto said = refusal(error_code::bad_data);
  EXPECT_THAT(said, HasSubstr(path("images")));
  EXPECT_THAT(said, HasSubstr(path("labels")));
}

TEST_F(prepared_job_test, validation_data_is_checked_as_well) {
  write_records("others", 3);
  write_labels("their-labels", {0, 1, 2});
  const std::string validation = "data.validation={records: others, labels: their-labels}";
  const auto job = prepare({validation});
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->validation_records, 3U);
  EXPECT_EQ(data::memory_of(*job->data).size(), 4U);
  write_labels("their-labels", {0, 1, 3});
  EXPECT_THAT(refusal(error_code::bad_data, {validation}), HasSubstr(path("their-labels")));
}

TEST_F(prepared_job_test, validation_is_as_training_where_it_says_nothing) {
  const auto job = prepare(
      {"data.train.normalize={mean: 0.5, std: 0.25}", "data.validation={records: images, labels: labels}"});
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->spec.data().validation().normalize().mean(0), 0.5);
  EXPECT_EQ(job->spec.data().validation().format(), "idx");
  EXPECT_EQ(job->spec.data().validation().targets(), "classes");
}

TEST_F(prepared_job_test, a_split_is_taken_from_the_training_records) {
  const auto job = prepare({"data.validation.split=0.2"});
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->train_records, 8U);
  EXPECT_EQ(job->validation_records, 2U);
  EXPECT_EQ(job->steps, 4U) << "two an epoch";
}

/// So that data that is read later, or elsewhere, is read in the same way.
TEST_F(prepared_job_test, what_the_data_teaches_is_in_the_specification) {
  std::ofstream(path("people.csv")) << "age,city,kind\n1,Rome,b\n3,Oslo,a\n2,Rome,c\n";
  text = with(
      text, "{records: images, labels: labels}",
      "{format: csv, records: people.csv, csv: {target: kind, columns: [{column: age, standardize: true}, "
      "{column: city, type: categorical, encoding: one_hot}]}}");
  text = with(text, "[4]", "[3]");
  const auto job = prepare();
  ASSERT_TRUE(job) << job.error().message;
  const auto& csv = job->spec.data().train().csv();
  EXPECT_THAT(csv.classes(), testing::ElementsAre("a", "b", "c"));
  EXPECT_EQ(csv.columns(0).mean(), 2);
  EXPECT_THAT(csv.columns(1).vocabulary(), testing::ElementsAre("Rome", "Oslo"));
  const auto again = job::parse_spec(job::write_spec(job->spec), "spec.yaml", "/");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(job::write_spec(*again), job::write_spec(job->spec));
}

TEST_F(prepared_job_test, a_class_too_many_is_told_by_its_name_and_record) {
  std::ofstream(path("people.csv")) << "age,kind\n1,b\n3,a\n2,c\n4,aa\n5,a\n6,b\n7,c\n";
  text = with(text, "{records: images, labels: labels}",
              "{format: csv, records: people.csv, csv: {target: kind}}");
  text = with(text, "[4]", "[1]");
  EXPECT_THAT(
      refusal(error_code::bad_data),
      HasSubstr("people.csv: there are 4 classes, but the model has only 3 outputs. The rarest class is "
                "\"aa\": 1 of 7 records that are trained on has it, the first is record 3"));
  std::ofstream(path("people.csv")) << "age,kind\n1,b\n3,a\n2,c\n5,a\n";
  text = with(text, "{target: kind}", "{target: kind, classes: [a, aa, b, c]}");
  EXPECT_THAT(refusal(error_code::bad_data),
              HasSubstr("\"aa\": none of the records that are trained on has it"));
}

TEST_F(prepared_job_test, only_images_can_be_augmented) {
  EXPECT_TRUE(prepare({"data.train.augment={horizontal_flip: {}}"})) << "2 x 2";
  folder.write("images", idx_bytes({10, 4}, counting(40)));
  EXPECT_THAT(refusal(error_code::bad_spec, {"data.train.augment={horizontal_flip: {}}"}),
              HasSubstr("data.train.augment"));
}

TEST_F(prepared_job_test, an_unknown_format_is_refused_with_those_there_are) {
  EXPECT_THAT(refusal(error_code::bad_spec, {"data.train.format=idxx"}), HasSubstr("there are idx, csv"));
}

// ---- targets and records, those of validation data too

/// A job on two tables with a loss, for one output.
std::string table_job(const std::string& loss) {
  return "model: {input: [1], layers: [{linear: {out_features: 1}}], loss: " + loss + R"(}
data: {train: {format: csv, records: t.csv, csv: {target: y}}, validation: {records: v.csv}}
train: {microbatch_size: 2, microbatches_per_step: 1, optimizer: {sgd: {lr: 0.1}}}
)";
}

TEST_F(prepared_job_test, targets_that_a_loss_does_not_take_are_refused_before_anything_starts) {
  const auto table = [](const std::string& target) {
    return test::text_bytes("x,y\n1,0\n2,1\n3," + target + "\n");
  };
  text = table_job("bce_with_logits");
  for (const auto* const name : {"t.csv", "v.csv"}) {
    folder.write("t.csv", table("0.5"));
    folder.write("v.csv", table("1"));
    EXPECT_TRUE(prepare());
    for (const auto* const wrong : {"2", "-0.001", "1.5"}) {
      folder.write(name, table(wrong));
      EXPECT_THAT(refusal(error_code::bad_data),
                  HasSubstr(fmt::format("{}: record 2 has the target {} (value 0 of 1), but the loss "
                                        "bce_with_logits takes numbers from 0 to 1",
                                        path(name), wrong)));
    }
  }
  for (const auto* const loss : {"mse", "l1", "huber"}) {
    text = table_job(loss);
    folder.write("t.csv", table("-7"));
    folder.write("v.csv", table("1e30"));
    EXPECT_TRUE(prepare());
    folder.write("v.csv", table("nan"));
    EXPECT_THAT(refusal(error_code::bad_data), HasSubstr("v.csv: line 4, column y: \"nan\" is not a number"));
  }
}

TEST_F(prepared_job_test, records_that_are_no_numbers_are_refused_before_anything_starts) {
  const auto records = [&](const std::string& name, float last) {
    std::vector<float> values(40, 1.0F);
    values.back() = last;
    folder.write(name, test::npy_bytes("<f4", "(10, 4)", test::bytes_of(values)));
  };
  folder.write("labels.npy", test::npy_bytes("|u1", "(10,)", {0, 1, 2, 0, 1, 2, 0, 1, 2, 0}));
  text = with(text, "records: images, labels: labels}",
              "format: npy, records: a.npy, labels: labels.npy}, "
              "validation: {records: b.npy, labels: labels.npy}");
  for (const auto* const name : {"a.npy", "b.npy"}) {
    records("a.npy", 1);
    records("b.npy", 1);
    EXPECT_TRUE(prepare());
    records(name, NAN);
    EXPECT_THAT(refusal(error_code::bad_data), HasSubstr(path(name) + ": record 9 has nan at place 3"));
  }
}

TEST_F(prepared_job_test, as_many_columns_as_are_read_can_be_kept_and_read_again) {
  std::string head = "y", line = "0", other = "1";
  for (int i = 1; i < 65'536; ++i) {
    head += fmt::format(",column-{}", i);
    line += ",1";
    other += ",2";
  }
  folder.write("wide.csv", test::text_bytes(head + '\n' + line + '\n' + other + '\n'));
  text = R"(model: {input: [65535], layers: [{linear: {out_features: 2}}]}
data: {train: {format: csv, records: wide.csv, csv: {target: y}}, validation: {records: wide.csv}}
train: {microbatch_size: 2, microbatches_per_step: 1, optimizer: {sgd: {lr: 0.1}}}
)";
  const auto job = prepare();
  ASSERT_TRUE(job) << job.error().message;
  ASSERT_TRUE(job::write_spec_file(path("spec.yaml"), job->spec));
  const auto again = job::read_spec(path("spec.yaml"));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->data().train().csv().columns_size(), 65'535);
  folder.write("wide.csv", test::text_bytes(head + ",z\n" + line + ",1\n"));
  EXPECT_THAT(refusal(error_code::bad_data), HasSubstr("65537 columns; at most 65536 are read"));
}

// ---- weights to start from

TEST_F(prepared_job_test, weights_to_start_from_are_checked_named_by_digest_and_kept_open) {
  const std::vector<float> zeroes(12);
  const auto bytes = std::as_bytes(std::span{zeroes});
  const std::vector<weights::written_tensor> tensors{{"linear0.weight", "F32", {3, 4}, bytes},
                                                     {"linear0.bias", "F32", {3}, bytes.first(12)}};
  ASSERT_TRUE(weights::write_safetensors(path("w.safetensors"), tensors, {}));
  const auto job = prepare({"train.init_from=w.safetensors"});
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->spec.train().init_from(), path("w.safetensors"));
  EXPECT_TRUE(job->initial_weights && *job->initial_weights);
  const auto digest = job->spec.train().init_sha256();
  EXPECT_EQ(digest.size(), 64U);
  EXPECT_TRUE(prepare({"train.init_from=w.safetensors", "train.init_sha256='" + digest + "'"}));
  ASSERT_TRUE(weights::write_safetensors(path("w.safetensors"), tensors, {{"another", "file"}}));
  EXPECT_THAT(
      refusal(error_code::bad_data, {"train.init_from=w.safetensors", "train.init_sha256='" + digest + "'"}),
      HasSubstr("train.init_sha256 says " + digest));
}

TEST_F(prepared_job_test, weights_that_are_no_numbers_are_refused_naming_file_tensor_and_place) {
  std::vector<float> values(12);
  const auto bytes = std::as_bytes(std::span{values});
  values[7] = NAN;
  const std::vector<weights::written_tensor> tensors{{"linear0.weight", "F32", {3, 4}, bytes},
                                                     {"linear0.bias", "F32", {3}, bytes.first(12)}};
  ASSERT_TRUE(weights::write_safetensors(path("w.safetensors"), tensors, {}));
  EXPECT_THAT(refusal(error_code::bad_data, {"train.init_from=w.safetensors"}),
              HasSubstr(path("w.safetensors") + ": tensor 'linear0.weight' has nan at [1, 3]"));
}

TEST_F(prepared_job_test, weights_that_do_not_fit_are_refused_naming_the_tensors) {
  const std::vector<float> zeroes(16);
  const weights::written_tensor one{"linear0.weight", "F32", {4, 4}, std::as_bytes(std::span{zeroes})};
  ASSERT_TRUE(weights::write_safetensors(path("w.safetensors"), std::span{&one, 1}, {}));
  const auto said = refusal(error_code::bad_data, {"train.init_from=w.safetensors"});
  EXPECT_THAT(said, HasSubstr("'linear0.weight' is [3, 4] in the model, [4, 4] in the file"));
  EXPECT_THAT(said, HasSubstr("'linear0.bias' [3] is not in the file"));
  EXPECT_THAT(refusal(error_code::bad_data, {"train.init_from=nowhere"}), HasSubstr(path("nowhere")));
}

/// It would fail in the last step of the first epoch, after hours.
TEST_F(prepared_job_test, a_rest_of_one_record_is_refused_where_a_layer_needs_two) {
  text = with(text, "[{linear", "[{batch_norm: {}, name: normal}, {linear");
  ASSERT_TRUE(prepare()) << "the last microbatch has two records";
  write_records("images", 9);
  write_labels("labels", {0, 1, 2, 0, 1, 2, 0, 1, 2});
  const auto said = refusal(error_code::bad_spec);
  EXPECT_THAT(said, HasSubstr("layer 'normal' needs microbatches of at least 2 records"));
  EXPECT_THAT(said, HasSubstr("choose a train.microbatch_size"));
}

TEST_F(prepared_job_test, clipping_by_norm_is_refused_where_a_ps_shard_has_too_many_blocks_for_a_message) {
  const std::vector<std::string> huge{
      "model.layers=[{linear: {out_features: 1048576}}, {linear: {out_features: "
      "320}}, {linear: {out_features: 3}}]",
      "cluster.ps_shards=1"};
  EXPECT_TRUE(prepare(huge));
  auto clipped = huge;
  clipped.push_back("train.clip_norm=1");
  const auto said = refusal(error_code::bad_spec, clipped);
  EXPECT_THAT(said, HasSubstr("train.clip_norm takes at most 4096 blocks"));
  EXPECT_THAT(said, HasSubstr("choose more PS shards"));
  clipped[1] = "cluster.ps_shards=2";
  EXPECT_TRUE(prepare(clipped));
}

} // namespace
} // namespace dlrun::runtime
