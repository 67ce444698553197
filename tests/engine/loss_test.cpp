// Losses against PyTorch (tests/engine/data/generate_loss_vectors.py) and against their own
// differences.
#include "engine/loss.hpp"

#include "tests/engine/data/pytorch_loss_vectors.hpp"
#include "tests/engine/spec_builder.hpp"

#include <cmath>
#include <limits>
#include <random>

namespace dlrun::engine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::parse;
using floats = std::vector<float>;

/// A model of one layer that keeps its input's shape, and the loss `text`.
std::string model_with(const std::string& text, const std::string& input = "4") {
  return "input: [" + input + "] layers { name: 'last' relu {} } " + text;
}

std::unique_ptr<const loss> loss_of(const std::string& text, std::int64_t outputs) {
  auto made = make_loss(parse<spec::ModelSpec>("layers { relu {} } " + text), {outputs});
  EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().message);
  return std::move(made.value());
}

void expect_close(std::span<const float> actual, std::span<const float> expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], tolerance * std::max(1.0F, std::abs(expected[i]))) << i;
}

void expect_as_pytorch(const std::string& text, const floats& outputs, const batch& targets,
                       const floats& expected_loss, const floats& expected_gradient) {
  SCOPED_TRACE(text);
  const auto made = loss_of(text, static_cast<std::int64_t>(outputs.size()) / targets.size);
  ASSERT_TRUE(made->check(targets));
  floats gradient(outputs.size(), 9.0F);
  const double value = made->forward(outputs, targets, gradient);
  EXPECT_NEAR(value, expected_loss[0], 3e-7 * expected_loss[0]);
  expect_close(gradient, expected_gradient, 1e-6);
  EXPECT_EQ(made->forward(outputs, targets, {}), value) << "without a gradient";
}

// ---- PyTorch

TEST(pytorch_losses, cross_entropy_has_the_same_sum_and_gradient) {
  namespace p = pytorch_losses;
  const std::vector<std::int32_t> labels{1, 3, 0, 0, 2, 1};
  const batch targets{{}, labels, {}, 6};
  const std::string weight = "weight: [0.5, 2, 1, 3] ";
  expect_as_pytorch("", p::scores, targets, p::cross_entropy_loss, p::cross_entropy_gradient);
  expect_as_pytorch("loss { cross_entropy { label_smoothing: 0.1 } }", p::scores, targets, p::smoothed_loss,
                    p::smoothed_gradient);
  expect_as_pytorch("loss { cross_entropy { " + weight + "} }", p::scores, targets, p::weighted_loss,
                    p::weighted_gradient);
  expect_as_pytorch("loss { cross_entropy { " + weight + " label_smoothing: 0.3 } }", p::scores, targets,
                    p::weighted_and_smoothed_loss, p::weighted_and_smoothed_gradient);
}

/// docs/spec.md: PyTorch's mean is our sum over the weights of the records, not over their number.
TEST(pytorch_losses, the_weighted_mean_differs_by_the_mean_weight_of_the_records) {
  namespace p = pytorch_losses;
  const std::vector<std::int32_t> labels{1, 3, 0, 0, 2, 1};
  const auto made = loss_of("loss { cross_entropy { weight: [0.5, 2, 1, 3] } }", 4);
  EXPECT_NEAR(made->forward(p::scores, {{}, labels, {}, 6}, {}) / p::weight_of_labels[0], p::weighted_mean[0],
              1e-6 * p::weighted_mean[0]);
}

TEST(pytorch_losses, distances_have_the_same_mean_and_gradient) {
  namespace p = pytorch_losses;
  const batch targets{{}, {}, p::targets, 5}, yes{{}, {}, p::yes, 5};
  expect_as_pytorch("loss { mse {} }", p::outputs, targets, p::mse_loss, p::mse_gradient);
  expect_as_pytorch("loss { l1 {} }", p::outputs, targets, p::l1_loss, p::l1_gradient);
  expect_as_pytorch("loss { huber {} }", p::outputs, targets, p::huber_loss, p::huber_gradient);
  expect_as_pytorch("loss { huber { delta: 2.5 } }", p::outputs, targets, p::huber_wide_loss,
                    p::huber_wide_gradient);
  expect_as_pytorch("loss { bce_with_logits {} }", p::logits, yes, p::bce_loss, p::bce_gradient);
  expect_as_pytorch("loss { bce_with_logits { pos_weight: [3, 0.5, 1] } }", p::logits, yes,
                    p::bce_weighted_loss, p::bce_weighted_gradient);
}

// ---- differences

class loss_gradient : public ::testing::TestWithParam<const char*> {};

TEST_P(loss_gradient, equals_central_differences_in_float64) {
  constexpr std::size_t records = 7, width = 5;
  const auto made = loss_of(std::string("loss { ") + GetParam() + " }", width);
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  floats outputs(records * width), values(outputs.size()), gradient(outputs.size());
  for (auto& one : outputs) one = 3 * normal(random);
  for (auto& one : values) one = std::abs(std::sin(normal(random)));
  std::vector<std::int32_t> classes;
  for (std::size_t r = 0; r < records; ++r) classes.push_back(static_cast<std::int32_t>(random() % width));
  const bool numbers = made->targets() == target_kind::values;
  const batch targets{{},
                      numbers ? std::span<const std::int32_t>() : classes,
                      numbers ? values : std::span<const float>(),
                      records};
  made->forward(outputs, targets, gradient);
  // The kernels take differences of outputs in float32: 1e-7 of rounding over twice the distance.
  // Where an absolute value bends there is no difference to take.
  constexpr float distance = 4e-3F;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const float at = outputs[i], above = at + distance, below = at - distance;
    if (numbers && std::abs(at - values[i]) < distance) continue;
    outputs[i] = above;
    const double high = made->forward(outputs, targets, {});
    outputs[i] = below;
    const double low = made->forward(outputs, targets, {});
    outputs[i] = at;
    const double expected = (high - low) / (static_cast<double>(above) - static_cast<double>(below));
    EXPECT_NEAR(gradient[i], expected, 2e-5 * std::max(1.0, std::abs(expected))) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(of, loss_gradient,
                         ::testing::Values("cross_entropy {}", "cross_entropy { label_smoothing: 0.2 }",
                                           "cross_entropy { weight: [1, 2, 0, 0.5, 3] label_smoothing: 0.1 }",
                                           "bce_with_logits {}", "bce_with_logits { pos_weight: 4 }",
                                           "bce_with_logits { pos_weight: [1, 2, 0, 0.5, 3] }", "mse {}",
                                           "l1 {}", "huber {}", "huber { delta: 0.3 }"));

// ---- corners

TEST(loss, weights_of_one_are_none) {
  const std::vector<std::int32_t> labels{0, 2};
  const floats scores{1, -2, 0.5F, 3, 1, 3};
  floats plain(6), weighted(6);
  const double one = loss_of("", 3)->forward(scores, {{}, labels, {}, 2}, plain);
  const double other = loss_of("loss { cross_entropy { weight: [1, 1, 1] } }", 3)
                           ->forward(scores, {{}, labels, {}, 2}, weighted);
  EXPECT_NEAR(one, other, 1e-14);
  expect_close(plain, weighted, 1e-7);
}

TEST(loss, a_class_that_is_impossible_costs_nothing_unless_the_label_is_spread) {
  const float never = -std::numeric_limits<float>::infinity();
  const std::vector<std::int32_t> labels{0};
  const floats scores{1, never, 1};
  floats gradient(3);
  const batch one{{}, labels, {}, 1};
  EXPECT_NEAR(loss_of("loss { cross_entropy { weight: [2, 1, 1] } }", 3)->forward(scores, one, gradient),
              2 * std::log(2.0), 1e-12);
  EXPECT_EQ(gradient[1], 0.0F);
  EXPECT_TRUE(std::isinf(
      loss_of("loss { cross_entropy { label_smoothing: 0.1 } }", 3)->forward(scores, one, gradient)));
}

TEST(loss, great_logits_do_not_overflow_and_what_is_not_a_number_shows) {
  const floats yes{1, 0};
  const batch targets{{}, {}, yes, 1};
  floats gradient(2);
  EXPECT_EQ(loss_of("loss { bce_with_logits {} }", 2)->forward(floats{3e38F, -3e38F}, targets, gradient),
            0.0);
  EXPECT_EQ(gradient, (floats{0, 0}));
  for (const char* kind : {"bce_with_logits {}", "mse {}", "l1 {}", "huber {}"}) {
    const auto made = loss_of(std::string("loss { ") + kind + " }", 2);
    EXPECT_TRUE(std::isnan(made->forward(floats{1, std::nanf("")}, targets, gradient))) << kind;
    EXPECT_TRUE(std::isnan(gradient[1])) << kind;
  }
}

TEST(loss, targets_that_it_cannot_compare_with_are_named) {
  const auto refusal = [](const char* text, const floats& values) {
    const auto checked = loss_of(text, 2)->check({{}, {}, values, 2});
    EXPECT_FALSE(checked);
    if (checked) return std::string();
    EXPECT_EQ(checked.error().code, error_code::bad_data);
    return checked.error().message;
  };
  EXPECT_THAT(refusal("loss { bce_with_logits {} }", {0, 1, 0.5F, 2}),
              AllOf(HasSubstr("record 1"), HasSubstr("target 2 (value 1 of 2)"), HasSubstr("from 0 to 1")));
  EXPECT_THAT(refusal("loss { mse {} }", {0, std::nanf(""), 0, 0}),
              AllOf(HasSubstr("record 0"), HasSubstr("nan"), HasSubstr("mse takes finite numbers")));
  EXPECT_TRUE(loss_of("loss { huber {} }", 2)->check({{}, {}, floats{-1e30F, 7, 2, 0}, 2}));
}

TEST(loss, an_output_or_argument_that_does_not_fit_is_refused_naming_layer_and_shape) {
  using testing::refusal;
  for (const char* kind : {"cross_entropy", "bce_with_logits", "mse", "l1", "huber"})
    EXPECT_THAT(refusal(model_with(std::string("loss { ") + kind + " {} }", "2, 4, 4")),
                AllOf(HasSubstr(std::string("loss ") + kind), HasSubstr("'last'"), HasSubstr("[2, 4, 4]"),
                      HasSubstr("flatten")));
  EXPECT_THAT(refusal(model_with("loss { cross_entropy { weight: [1, 2] } }")),
              AllOf(HasSubstr("weight has 2 values"), HasSubstr("'last'"), HasSubstr("4 classes")));
  EXPECT_THAT(refusal(model_with("loss { bce_with_logits { pos_weight: [1, 2] } }")),
              AllOf(HasSubstr("pos_weight has 2 values"), HasSubstr("'last'"), HasSubstr("4 outputs")));
  EXPECT_THAT(refusal(model_with("loss { cross_entropy { label_smoothing: 1.5 } }")), HasSubstr("1.5"));
  EXPECT_THAT(refusal(model_with("loss { cross_entropy { weight: [1, 1, -1, 1] } }")), HasSubstr("-1"));
  EXPECT_THAT(refusal(model_with("loss { bce_with_logits { pos_weight: -3 } }")), HasSubstr("-3"));
  EXPECT_THAT(refusal(model_with("loss { huber { delta: 0 } }")), HasSubstr("delta 0"));
}

TEST(loss, tells_what_it_compares) {
  const auto classes = loss_of("", 7), values = loss_of("loss { mse {} }", 7);
  EXPECT_EQ(classes->name(), "cross_entropy");
  EXPECT_EQ(classes->targets(), target_kind::classes);
  EXPECT_EQ(classes->target_values(), 1);
  EXPECT_EQ(values->targets(), target_kind::values);
  EXPECT_EQ(values->target_values(), 7);
  EXPECT_EQ(loss_of("loss { bce_with_logits {} }", 1)->outputs(), output_kind::logits);
}

} // namespace
} // namespace dlrun::engine
