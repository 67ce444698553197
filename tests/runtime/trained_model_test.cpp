#include "tests/integration/own_layer.hpp"
#include "tests/runtime/small_training.hpp"

#include <dlrun/model.hpp>
#include <dlrun/training.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdexcept>

namespace dlrun {
namespace {

using testing::HasSubstr;

class trained_model_test : public testing::Test {
protected:
  trained_model_test() {
    auto one = training::start(small.job(), {.run_dir = small.run_dir()});
    EXPECT_TRUE(one) << (one ? "" : one.error().message);
    report = one->wait().value();
  }
  trained_model load() const { return trained_model::load({.path = small.run_dir().string()}).value(); }

  test::small_training small;
  dlrun::report report;
};

TEST_F(trained_model_test, computes_what_its_tensors_say) {
  auto model = load();
  EXPECT_EQ(model.input_shape(), (shape{2}));
  EXPECT_EQ(model.output_shape(), (shape{2}));
  EXPECT_EQ(model.step(), 8U);
  const auto tensors = model.tensors();
  ASSERT_EQ(tensors.size(), 2U);
  EXPECT_EQ(tensors[0].name, "only.weight");
  EXPECT_EQ(tensors[0].extents, (shape{2, 2}));
  EXPECT_EQ(tensors[1].name, "only.bias");
  const std::vector<float> records{1, 0, 0, 1, 0, 0};
  const auto outputs = model.predict(records);
  ASSERT_TRUE(outputs) << outputs.error().message;
  ASSERT_EQ(outputs->size(), 6U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR((*outputs)[i], tensors[0].values[2 * i] + tensors[1].values[i], 1e-6);
    EXPECT_NEAR((*outputs)[2 + i], tensors[0].values[2 * i + 1] + tensors[1].values[i], 1e-6);
    EXPECT_EQ((*outputs)[4 + i], tensors[1].values[i]);
  }
}

/// Trains, and cannot be asked afterwards.
class silent_operation final : public test::handing_on {
  void while_training(const pass& now, std::span<const float>) override { trains = now.training; }
  void while_predicting() override { throw std::runtime_error("no answer"); }
  bool trains = false;
};

TEST_F(trained_model_test, says_what_a_layer_of_the_program_threw) {
  ASSERT_TRUE(test::register_own_layer<silent_operation>("silent"));
  auto one =
      training::start(small.job({"model.layers=[{custom: {type: silent}}, {linear: {out_features: 2}}]"}),
                      {.run_dir = small.folder.path() / "silent"});
  ASSERT_TRUE(one) << one.error().message;
  ASSERT_EQ(one->wait()->status, run_status::completed);
  auto model = trained_model::load({.path = (small.folder.path() / "silent").string()});
  ASSERT_TRUE(model) << model.error().message;
  const auto outputs = model->predict(std::vector<float>{1, 0});
  ASSERT_FALSE(outputs);
  EXPECT_EQ(outputs.error().code, error_code::bad_usage);
  EXPECT_EQ(outputs.error().message, "cannot predict: no answer");
}

TEST_F(trained_model_test, is_the_same_from_a_weights_file) {
  auto model = load();
  const auto file = small.folder.path() / "w.safetensors";
  ASSERT_TRUE(model.save(file));
  auto again =
      trained_model::load({.path = file.string(), .spec_file = (small.run_dir() / "spec.yaml").string()});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_FALSE(again->step());
  const std::vector<float> records{0.5F, -3};
  EXPECT_EQ(*again->predict(records), *model.predict(records));
}

TEST_F(trained_model_test, takes_whole_records) {
  auto model = load();
  for (const auto count : {std::size_t{0}, std::size_t{3}}) {
    const std::vector<float> records(count);
    const auto outputs = model.predict(records);
    ASSERT_FALSE(outputs);
    EXPECT_EQ(outputs.error().code, error_code::bad_usage);
    EXPECT_THAT(outputs.error().message, HasSubstr("are no records of shape [2]"));
  }
}

TEST_F(trained_model_test, a_version_that_there_is_not_is_refused) {
  const auto model = trained_model::load({.path = small.run_dir().string(), .step = 99});
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message, HasSubstr("does not have step 99 on disk"));
}

} // namespace
} // namespace dlrun
