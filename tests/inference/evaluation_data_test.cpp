#include "inference/evaluation_data.hpp"

#include "data/recorded_data.hpp"
#include "job/spec_reader.hpp"
#include "tests/data/files.hpp"

#include <fstream>
#include <gmock/gmock.h>

namespace dlrun::inference {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::uint64_t table_records = 40; // 10 of them split off; 30 in 4 steps of 8

/// A model of a table of different records, a fourth of which is split off.
class evaluation_data_test : public testing::Test {
protected:
  evaluation_data_test() {
    write("all.csv", 0, table_records);
    std::ofstream(folder.path() / "job.yaml") << text;
  }
  void write(const std::string& name, std::uint64_t first, std::uint64_t end) const {
    std::ofstream file(folder.path() / name);
    file << "x,y,class\n";
    for (auto i = first; i < end; ++i) file << i << "," << 2 * i << (i % 2 == 0 ? ",a\n" : ",b\n");
  }
  /// Trained as job.yaml says and `of_training`, evaluated with `overrides` besides.
  loaded_model model(std::vector<std::string> overrides, std::optional<version_id> version = std::nullopt,
                     std::vector<std::string> of_training = {}) const {
    loaded_model made;
    made.trained = job::read_spec(folder.path() / "job.yaml", of_training).value();
    overrides.insert(overrides.begin(), of_training.begin(), of_training.end());
    made.spec = job::read_spec(folder.path() / "job.yaml", overrides).value();
    made.model = engine::model::build(made.spec.model()).value();
    made.version = version;
    return made;
  }
  /// Of a run, which wrote down what its data is, and what that taught.
  loaded_model run(std::vector<std::string> overrides = {}, std::vector<std::string> of_training = {}) const {
    auto made = model(std::move(overrides), version_id{8}, std::move(of_training));
    auto& trained = *made.trained.mutable_data();
    const auto data =
        data::decode_job_data(trained, made.trained.train().seed(), target_kind::classes).value();
    for (auto& one : data::digests_of(data)) *made.recorded.arrays.Add() = std::move(one);
    auto& now = *made.spec.mutable_data();
    *now.mutable_train()->mutable_csv() = trained.train().csv();
    if (now.validation().has_csv()) *now.mutable_validation()->mutable_csv() = trained.train().csv();
    return made;
  }
  /// Why it is not known what was trained on.
  static std::string why_unknown(const loaded_model& of) {
    const auto data = open_evaluation(of);
    EXPECT_TRUE(data) << (data ? "" : data.error().message);
    EXPECT_FALSE(data && data->trained_on);
    return data ? data->why_unknown : "";
  }
  std::uint64_t trained_on(const loaded_model& of) const {
    const auto data = open_evaluation(of);
    EXPECT_TRUE(data) << (data ? "" : data.error().message);
    EXPECT_TRUE(data && data->trained_on) << (data ? data->why_unknown : "");
    return data ? data->trained_on.value_or(999) : 999;
  }
  std::string validation(const std::string& file) const {
    return "data.validation={format: csv, records: " + (folder.path() / file).string() + "}";
  }

  test::temporary_folder folder;
  std::string text =
      R"(model: {input: [2], layers: [{linear: {out_features: 2}}]}
data: {train: {format: csv, records: all.csv, csv: {target: class}}, validation: {split: 0.25}}
train: {epochs: 2, microbatch_size: 2, microbatches_per_step: 4, optimizer: {sgd: {lr: 0.1}}}
)";
};

TEST_F(evaluation_data_test, what_was_split_off_was_not_trained_on) {
  EXPECT_EQ(trained_on(model({})), 0U);
  EXPECT_EQ(trained_on(model({}, version_id{8})), 0U);
}

TEST_F(evaluation_data_test, another_split_holds_records_that_were_trained_on) {
  const auto data = open_evaluation(model({"data.validation.split=0.5"})).value();
  EXPECT_EQ(data.records->record_count(), 20U);
  EXPECT_GE(data.trained_on.value(), 10U) << "there are only ten others";
  EXPECT_LE(data.trained_on.value(), 20U);
}

TEST_F(evaluation_data_test, another_seed_splits_off_others) {
  const auto seen = trained_on(model({"train.seed=2"}));
  EXPECT_GT(seen, 0U);
  EXPECT_LE(seen, 10U);
}

TEST_F(evaluation_data_test, the_training_file_itself_was_trained_on) {
  EXPECT_EQ(trained_on(model({validation("all.csv")})), 30U);
  std::filesystem::copy_file(folder.path() / "all.csv", folder.path() / "copy.csv");
  EXPECT_EQ(trained_on(model({validation("copy.csv")})), 30U) << "under another name too";
}

TEST_F(evaluation_data_test, a_file_that_overlaps_is_known_record_by_record) {
  write("later.csv", 30, 60);
  const auto without_split = std::vector<std::string>{validation("all.csv")};
  EXPECT_EQ(trained_on(model({validation("later.csv")}, std::nullopt, without_split)), 10U);
  write("other.csv", 100, 160);
  EXPECT_EQ(trained_on(model({validation("other.csv")}, std::nullopt, without_split)), 0U);
}

TEST_F(evaluation_data_test, another_normalisation_makes_no_other_record) {
  folder.write("images", test::idx_bytes({20, 2}, test::counting(40)));
  folder.write("labels", test::idx_bytes({20}, test::bytes(20, 1)));
  std::ofstream(folder.path() / "job.yaml") << R"(model: {input: [2], layers: [{linear: {out_features: 2}}]}
data:
  train: {records: images, labels: labels, normalize: {mean: 0.5, std: 0.25}}
  validation: {records: images, labels: labels}
train: {microbatch_size: 2, optimizer: {sgd: {lr: 0.1}}}
)";
  const std::string other = "data.train.normalize={mean: 0.1, std: 3}";
  EXPECT_EQ(trained_on(model({other})), 20U);
  folder.write("others", test::idx_bytes({20}, test::bytes(20, 0)));
  EXPECT_EQ(trained_on(model({other, "data.validation.labels=" + (folder.path() / "others").string()})), 0U)
      << "a record is its inputs and its target";
}

TEST_F(evaluation_data_test, another_training_file_is_no_way_round) {
  std::filesystem::copy_file(folder.path() / "all.csv", folder.path() / "copy.csv");
  const auto file = "data.train.records=" + (folder.path() / "copy.csv").string();
  EXPECT_EQ(trained_on(model({file})), 0U);
  EXPECT_GT(trained_on(model({file, "data.validation.split=0.5"})), 0U);
}

TEST_F(evaluation_data_test, an_early_version_has_seen_the_records_of_its_steps) {
  for (const std::uint64_t steps : {0U, 1U, 3U})
    EXPECT_EQ(trained_on(model({validation("all.csv")}, version_id{steps})), 8 * steps);
  EXPECT_EQ(trained_on(model({validation("all.csv")}, version_id{4})), 30U);
}

TEST_F(evaluation_data_test, what_cannot_be_told_is_not_told) {
  std::filesystem::copy_file(folder.path() / "all.csv", folder.path() / "copy.csv");
  const auto moved = model({"data.train.records=" + (folder.path() / "copy.csv").string()});
  std::filesystem::remove(folder.path() / "all.csv");
  const auto data = open_evaluation(moved);
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_FALSE(data->trained_on);
  EXPECT_THAT(data->why_unknown, HasSubstr("all.csv"));
}

TEST_F(evaluation_data_test, training_data_that_was_changed_tells_nothing) {
  const auto own = run();
  EXPECT_EQ(trained_on(own), 0U);
  EXPECT_EQ(open_evaluation(own)->changed, "");
  write("all.csv", 1, table_records + 1); // each record is the next one
  EXPECT_THAT(why_unknown(own), AllOf(HasSubstr("data.train is not what the run was trained on"),
                                      HasSubstr("all.csv'): the first that differ: record 0 ")));
  EXPECT_THAT(open_evaluation(own)->changed, HasSubstr("split off from data.train"));
  write("all.csv", 0, table_records - 4);
  EXPECT_THAT(why_unknown(own), HasSubstr("36 of them, and the run has 40"));
}

TEST_F(evaluation_data_test, with_labels_changed_in_training_data_the_same) {
  const auto own = run();
  std::ofstream file(folder.path() / "all.csv");
  file << "x,y,class\n";
  for (std::uint64_t i = 0; i < table_records; ++i)
    file << i << "," << 2 * i << (i % 2 == 1 ? ",a\n" : ",b\n");
  file.close();
  EXPECT_THAT(why_unknown(own), HasSubstr("the targets of data.train"));
}

TEST_F(evaluation_data_test, changed_training_data_tells_nothing_of_other_files_either) {
  write("other.csv", 0, 20);
  const auto other = run({}, {validation("other.csv")});
  EXPECT_EQ(trained_on(other), 20U);
  write("all.csv", 30, table_records);
  EXPECT_THAT(why_unknown(other), HasSubstr("data.train is not what the run was trained on"));
  EXPECT_EQ(open_evaluation(other)->changed, "") << "the validation data is what it was";
}

TEST_F(evaluation_data_test, the_runs_own_validation_data_that_was_changed_is_told) {
  write("other.csv", 100, 120);
  const auto own = run({}, {validation("other.csv")});
  EXPECT_EQ(open_evaluation(own)->changed, "");
  write("other.csv", 90, 120);
  EXPECT_THAT(open_evaluation(own)->changed, AllOf(HasSubstr("the records of data.validation"),
                                                   HasSubstr("30 of them, and the run has 20")));
  EXPECT_EQ(trained_on(own), 0U) << "the training data tells still what was trained on";
  write("third.csv", 90, 95);
  auto another = own;
  another.spec.mutable_data()->mutable_validation()->set_records((folder.path() / "third.csv").string());
  EXPECT_EQ(open_evaluation(another)->changed, "") << "that is no data of the run";
}

TEST_F(evaluation_data_test, files_that_were_moved_are_known_by_what_they_hold) {
  auto moved = run();
  std::filesystem::rename(folder.path() / "all.csv", folder.path() / "moved.csv");
  moved.spec.mutable_data()->mutable_train()->set_records((folder.path() / "moved.csv").string());
  EXPECT_EQ(trained_on(moved), 0U);
  write("moved.csv", 5, table_records + 5);
  EXPECT_THAT(why_unknown(moved), HasSubstr("all.csv: No such file"));
}

TEST_F(evaluation_data_test, without_the_training_data_a_run_is_evaluated_on_other_files) {
  write("other.csv", 100, 120);
  const auto other = run({}, {validation("other.csv")});
  const auto split = run();
  std::filesystem::remove(folder.path() / "all.csv");
  EXPECT_THAT(why_unknown(other), HasSubstr("all.csv: No such file"));
  EXPECT_EQ(open_evaluation(other)->records->record_count(), 20U);
  const auto refused = open_evaluation(split);
  ASSERT_FALSE(refused) << "the records of a split are in it";
  EXPECT_EQ(refused.error().code, error_code::bad_data);
  const auto unlearnt = open_evaluation(model({}, std::nullopt, {validation("other.csv")}));
  ASSERT_FALSE(unlearnt) << "of a weights file whose job file does not have the names of classes";
  EXPECT_THAT(unlearnt.error().message, HasSubstr("all.csv: No such file"));
}

} // namespace
} // namespace dlrun::inference
