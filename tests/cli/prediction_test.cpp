#include "cli/prediction.hpp"

#include "inference/evaluation_data.hpp"
#include "inference/forward_pass.hpp"
#include "tests/data/files.hpp"
#include "tests/job/spec_text.hpp"
#include "tests/persistence/damage.hpp"
#include "weights/model_weights.hpp"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

namespace dlrun::cli {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t records = 23; // in microbatches of 4: the last one has 3

/// A model with running statistics, its job file, its weights file, and records to look at.
class prediction_test : public testing::Test {
protected:
  prediction_test() {
    folder.write("images", test::idx_bytes({records, 2, 2}, test::counting(records * 4)));
    test::bytes classes(records);
    for (std::uint32_t i = 0; i < records; ++i) classes[i] = static_cast<std::uint8_t>(i % 3);
    folder.write("labels", test::idx_bytes({records}, classes));
    std::ofstream(folder.path() / "job.yaml") << text;
    const auto spec = job::read_spec(folder.path() / "job.yaml").value();
    const auto model = engine::model::build(spec.model()).value();
    std::vector<float> flat(model->layout().flat_size());
    model->initialise(3, flat);
    EXPECT_TRUE(weights::write_weights(path("w.safetensors"), model->layout(), flat, 1, {}));
  }
  std::string path(const std::string& name) const { return (folder.path() / name).string(); }
  model_choice choice(std::vector<std::string> overrides = {}) const {
    return {.path = path("w.safetensors"), .spec_file = path("job.yaml"), .overrides = std::move(overrides)};
  }
  inference::loaded_model load() const { return runtime::load_model(choice()).value(); }
  result<inference::prediction_input> input(const inference::loaded_model& model,
                                            const std::string& file) const {
    return inference::open_input(model.spec, false, *model.model, path(file));
  }
  std::string lines(prediction_format format, std::size_t threads) const {
    const auto model = load();
    auto out = line_output::open(path("out")).value();
    const auto done = predict(model, input(model, "images").value(), format, threads, out);
    EXPECT_TRUE(done) << done.error().message;
    EXPECT_TRUE(out.finish());
    return test::content_of(path("out"));
  }
  std::string refusal(const model_choice& wrong) const {
    const auto model = runtime::load_model(wrong);
    if (model) return "";
    return model.error().message;
  }

  test::temporary_folder folder;
  std::string text =
      R"(model: {input: [4], layers: [{linear: {out_features: 5}, name: first}, batch_norm, relu, {linear: {out_features: 3}, name: last}]}
data:
  train: {records: images, labels: labels, normalize: {mean: 0.5, std: 0.25}}
  validation: {records: images, labels: labels, normalize: {mean: 0.5, std: 0.25}}
train: {microbatch_size: 4, optimizer: {sgd: {lr: 0.1}}}
)";
};

// ---- predict

TEST_F(prediction_test, there_is_a_line_a_record_in_the_order_of_the_file) {
  const auto all = lines(prediction_format::csv, 3);
  std::istringstream in(all);
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(line, "record,class,output0,output1,output2");
  for (std::uint32_t i = 0; i < records; ++i) {
    ASSERT_TRUE(std::getline(in, line)) << i;
    EXPECT_EQ(line.substr(0, line.find(',')), std::to_string(i));
  }
  EXPECT_FALSE(std::getline(in, line));
}

TEST_F(prediction_test, threads_change_no_byte) {
  for (const auto format : {prediction_format::csv, prediction_format::json}) {
    const auto one = lines(format, 1);
    EXPECT_EQ(lines(format, 2), one);
    EXPECT_EQ(lines(format, 16), one);
  }
}

/// The class that the accuracy counts is the class that is told.
TEST_F(prediction_test, classes_agree_with_the_accuracy) {
  const auto model = load();
  const auto data = inference::open_evaluation(model).value().records;
  std::istringstream in(lines(prediction_format::csv, 2));
  std::string line;
  std::getline(in, line);
  std::uint64_t hits = 0;
  for (std::uint64_t i = 0; std::getline(in, line); ++i)
    hits += line[line.find(',') + 1] - '0' == data->class_of(i).value();
  inference::forward_pass pass{model.model, inference::options_from(model.spec)};
  EXPECT_EQ(pass.evaluate(model.parameters, *data)->metrics[0].second, static_cast<double>(hits) / records);
}

TEST_F(prediction_test, a_line_has_every_digit_and_the_first_of_equal_classes) {
  const std::vector<float> outputs{-1.5F, 0.1F, 0.1F};
  EXPECT_EQ(prediction_line({.format = prediction_format::csv}, 7, outputs), "7,1,-1.5,0.1,0.1\n");
  EXPECT_EQ(prediction_line({.format = prediction_format::json}, 7, outputs),
            "{\"record\":7,\"class\":1,\"outputs\":[-1.5,0.1,0.1]}\n");
}

TEST_F(prediction_test, classes_that_have_names_are_named) {
  const std::vector<float> outputs{0, 2};
  const std::vector<std::string> names{"plain", "a \"b\", c"};
  EXPECT_EQ(prediction_line({prediction_format::csv, true, names}, 3, outputs),
            "3,1,\"a \"\"b\"\", c\",0,2\n");
  EXPECT_EQ(prediction_line({prediction_format::json, true, names}, 3, outputs),
            "{\"record\":3,\"class\":1,\"name\":\"a \\\"b\\\", c\",\"outputs\":[0,2]}\n");
}

TEST_F(prediction_test, where_no_classes_are_told_apart_there_are_none) {
  const std::vector<float> outputs{0.5F};
  EXPECT_EQ(prediction_line({prediction_format::csv, false, {}}, 3, outputs), "3,0.5\n");
  EXPECT_EQ(prediction_line({prediction_format::json, false, {}}, 3, outputs),
            "{\"record\":3,\"outputs\":[0.5]}\n");
}

TEST_F(prediction_test, what_is_no_number_is_null_in_json) {
  const std::vector<float> outputs{std::nanf(""), std::numeric_limits<float>::infinity()};
  EXPECT_THAT(prediction_line({.format = prediction_format::json}, 0, outputs), HasSubstr("[null,null]"));
  EXPECT_THAT(prediction_line({.format = prediction_format::csv}, 0, outputs), HasSubstr("nan,inf"));
}

TEST_F(prediction_test, data_of_another_shape_is_refused_naming_the_file) {
  folder.write("larger", test::idx_bytes({2, 3, 3}, test::counting(18)));
  const auto larger = input(load(), "larger");
  ASSERT_FALSE(larger);
  EXPECT_EQ(larger.error().code, error_code::bad_data);
  EXPECT_THAT(larger.error().message, HasSubstr(path("larger")));
}

TEST_F(prediction_test, a_record_with_an_output_that_is_no_number_has_no_class) {
  const std::vector<float> outputs{std::nanf(""), 1, 2};
  const std::vector<std::string> names{"cat", "dog", "fox"};
  EXPECT_EQ(prediction_line({prediction_format::csv, true, {}}, 3, outputs), "3,,nan,1,2\n");
  EXPECT_EQ(prediction_line({prediction_format::csv, true, names}, 3, outputs), "3,,,nan,1,2\n");
  EXPECT_EQ(prediction_line({prediction_format::json, true, {}}, 3, outputs),
            "{\"record\":3,\"class\":null,\"outputs\":[null,1,2]}\n");
  EXPECT_EQ(prediction_line({prediction_format::json, true, names}, 3, outputs),
            "{\"record\":3,\"class\":null,\"name\":null,\"outputs\":[null,1,2]}\n");
}

TEST_F(prediction_test, records_are_read_as_the_training_data_without_their_labels) {
  auto model = load();
  model.spec.mutable_data()->clear_validation();
  std::filesystem::remove(path("labels"));
  const auto found = input(model, "images");
  ASSERT_TRUE(found) << found.error().message;
  std::vector<float> first(4);
  const std::uint64_t index = 0;
  ASSERT_TRUE(found->records->read({&index, 1}, first, {}));
  EXPECT_TRUE(found->class_names.empty());
  EXPECT_EQ(first[0], (0.0F - 0.5F) / 0.25F);
}

// ---- what a model is loaded from

TEST_F(prediction_test, a_weights_file_needs_its_job_and_nothing_of_a_run) {
  auto wrong = choice();
  wrong.spec_file = "";
  EXPECT_THAT(refusal(wrong), HasSubstr("--spec"));
  wrong = choice();
  wrong.step = 3;
  EXPECT_THAT(refusal(wrong), HasSubstr("are for the folder of a run"));
  wrong = choice();
  wrong.path = folder.path().string();
  EXPECT_THAT(refusal(wrong), HasSubstr("--spec is for a weights file"));
  wrong.spec_file = "";
  EXPECT_THAT(refusal(wrong), HasSubstr("is not the folder of a run"));
  wrong = choice();
  wrong.path = path("nowhere");
  EXPECT_THAT(refusal(wrong), HasSubstr("No such file"));
}

TEST_F(prediction_test, a_weights_file_of_another_model_is_refused_naming_the_tensors) {
  const auto said = refusal(choice({"model.layers[0].linear.out_features=6"}));
  EXPECT_THAT(said, HasSubstr("'first.weight' is [6, 4] in the model, [5, 4] in the file"));
  EXPECT_THAT(said, HasSubstr("'last.weight'"));
}

} // namespace
} // namespace dlrun::cli
