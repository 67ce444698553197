#include "engine/update_rule.hpp"

#include "tests/engine/spec_builder.hpp"

#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace dlrun::engine {
namespace {

using ::testing::HasSubstr;
using testing::parse;
using floats = std::vector<float>;

update_rule make_rule(const std::string& text, const training_length& length = {}) {
  return update_rule::build(parse<spec::TrainSpec>(text), length).value();
}

std::string rule_refusal(const std::string& text) {
  const auto built = update_rule::build(parse<spec::TrainSpec>(text), {});
  EXPECT_FALSE(built.has_value()) << text;
  return built ? "" : built.error().message;
}

/// One step of sgd from zero, so that the parameters are minus the gradient that was used.
floats used_gradient(const update_rule& rule, const floats& sums, std::uint64_t records, double norm = 0) {
  floats parameters(sums.size(), 0.0F);
  rule.update({{0}, records, norm}, sums, parameters, parameters, {});
  for (auto& value : parameters) value = -value;
  return parameters;
}

// ---- schedules

TEST(schedule, goes_on_after_its_end_as_its_formula_says) {
  const auto rule = make_rule("optimizer { sgd { lr: 1 } } lr_schedule { cosine { t_max: 10 } }", {100, 1});
  EXPECT_NEAR(rule.lr({10}), 0, 1e-16);
  EXPECT_NEAR(rule.lr({20}), 1, 1e-15);
}

TEST(schedule, of_a_single_step_or_a_phase_of_no_length_is_finite) {
  for (const auto* text : {"one_cycle { max_lr: 1 }", "one_cycle { max_lr: 1 pct_start: 1 }",
                           "one_cycle { max_lr: 1 pct_start: 0 }", "cosine {}"})
    for (const training_length length : {training_length{1, 1}, {1, 2}, {7, 1}}) {
      const auto built = schedule::build(parse<spec::LrScheduleSpec>(text), length).value();
      for (std::uint64_t step = 0; step < length.steps_per_epoch * length.epochs; ++step) {
        EXPECT_GE(built.lr({step}, 1), 0) << text;
        EXPECT_LE(built.lr({step}, 1), 1) << text;
      }
    }
}

TEST(schedule, the_rate_of_a_long_training_is_the_same_whoever_asks_and_when) {
  const auto rule =
      make_rule("optimizer { sgd { lr: 0.1 } } lr_schedule { exponential { gamma: 0.999 } warmup_steps: 5 }");
  const auto late = rule.lr({1000000});
  for (std::uint64_t step = 0; step < 10; ++step) (void)rule.lr({step});
  EXPECT_EQ(rule.lr({1000000}), late);
}

TEST(schedule, refuses_milestones_that_do_not_ascend) {
  EXPECT_THAT(rule_refusal("optimizer { sgd { lr: 1 } } lr_schedule { multi_step { milestones: [5, 5] } }"),
              HasSubstr("milestones must ascend"));
}

// ---- clipping

TEST(update_rule, without_clipping_the_gradient_is_the_mean_to_the_last_bit) {
  const auto rule = make_rule("optimizer { sgd { lr: 1 } }");
  const floats sums{3.0F, -1e30F, 1e-40F, 0.7F};
  const float third = 1.0F / 3;
  EXPECT_EQ(used_gradient(rule, sums, 3), (floats{3 * third, -1e30F * third, 1e-40F * third, 0.7F * third}));
}

TEST(update_rule, clips_each_element_of_the_mean_by_value) {
  const auto rule = make_rule("optimizer { sgd { lr: 1 } } clip_value: 0.5");
  EXPECT_EQ(used_gradient(rule, {8, -8, 1, -0.5F}, 4), (floats{0.5F, -0.5F, 0.25F, -0.125F}));
}

TEST(update_rule, a_norm_up_to_the_limit_changes_no_bit) {
  const auto plain = make_rule("optimizer { sgd { lr: 1 } }");
  const auto rule = make_rule("optimizer { sgd { lr: 1 } } clip_norm: 5.1");
  const floats sums{6, -8.3F, 0.1F};
  const double norm = std::sqrt(rule.sum_of_squares(2, sums));
  ASSERT_NEAR(norm, 5.12, 0.01);
  EXPECT_EQ(used_gradient(rule, sums, 2, 5.0), used_gradient(plain, sums, 2));
  EXPECT_NE(used_gradient(rule, sums, 2, norm), used_gradient(plain, sums, 2));
}

TEST(update_rule, the_norm_is_of_what_clipping_by_value_leaves) {
  const auto rule = make_rule("optimizer { sgd { lr: 1 } } clip_value: 1 clip_norm: 1");
  EXPECT_EQ(rule.sum_of_squares(2, floats{100, -100, 1}), 2.25);
}

TEST(update_rule, squares_are_summed_in_double_precision_and_neither_overflow_nor_vanish) {
  const auto rule = make_rule("optimizer { sgd { lr: 1 } } clip_norm: 1");
  EXPECT_EQ(rule.sum_of_squares(1, floats(1000, 1e30F)), 1000 * (double{1e30F} * double{1e30F}));
  EXPECT_GT(rule.sum_of_squares(1, floats{1e-30F}), 0);
  floats many(65536, 1.0F);
  many[17] = 4096.0F;
  EXPECT_EQ(rule.sum_of_squares(1, many), 65535.0 + 4096.0 * 4096.0);
}

TEST(update_rule, squares_of_any_length_are_all_counted) {
  const auto rule = make_rule("optimizer { sgd { lr: 1 } } clip_norm: 1");
  for (std::size_t size = 0; size < 40; ++size) {
    floats values(size);
    double expected = 0;
    for (std::size_t i = 0; i < size; ++i) {
      values[i] = static_cast<float>(i + 1);
      expected += static_cast<double>((i + 1) * (i + 1));
    }
    EXPECT_EQ(rule.sum_of_squares(1, values), expected) << size;
  }
}

TEST(update_rule, what_is_no_number_stays_none) {
  const auto rule = make_rule("optimizer { sgd { lr: 1 } } clip_value: 1 clip_norm: 1");
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(rule.sum_of_squares(1, floats{1, nan})));
  EXPECT_TRUE(std::isnan(used_gradient(rule, {1, 2}, 1, nan)[0]));
  EXPECT_TRUE(std::isnan(used_gradient(rule, {nan, 2}, 1, 0.5)[0]));
}

/// Of many elements, so that the one that is none is in any part of what is computed at a time.
TEST(update_rule, says_when_it_makes_no_number) {
  for (const auto* text : {"sgd { lr: 1e6 }", "sgd { lr: 1e6 momentum: 0.9 }", "adam { eps: 0 }",
                           "adamw { eps: 0 amsgrad: true }", "adagrad { eps: 0 }", "rmsprop { eps: 0 }",
                           "rmsprop { eps: 0 centered: true momentum: 0.5 }"})
    for (const bool streams : {false, true})
      for (const std::size_t wrong : {0, 3, 2047, 2048, 4999}) {
        const auto rule = make_rule(fmt::format("optimizer {{ {} }}", text));
        const auto planes = rule.optimizer().state_planes().size();
        const auto update = [&](float value) {
          floats sums(5000, 1.0F), parameters(5000), state(5000 * planes);
          sums[wrong] = value;
          return rule.update({{0}, 1, 1, streams}, sums, parameters, parameters, state);
        };
        EXPECT_TRUE(update(2)) << text;
        const bool divides = std::string_view(text).find("eps") != std::string_view::npos;
        EXPECT_FALSE(update(divides ? 0 : 1e38F)) << text << " at " << wrong;
      }
}

TEST(update_rule, refuses_limits_that_clip_everything_away) {
  EXPECT_THAT(rule_refusal("optimizer { sgd { lr: 1 } } clip_value: 0"), HasSubstr("train.clip_value is 0"));
  EXPECT_THAT(rule_refusal("optimizer { sgd { lr: 1 } } clip_norm: -1"), HasSubstr("train.clip_norm is -1"));
  EXPECT_THAT(rule_refusal("optimizer { sgd { lr: 1 } } clip_norm: 1e-45"),
              HasSubstr("train.clip_norm is 1e-45"));
  EXPECT_THAT(rule_refusal("optimizer { sgd { lr: 1 } } clip_value: 1e-300"),
              HasSubstr("clip_value is 1e-300"));
  EXPECT_THAT(rule_refusal("optimizer { sgd { lr: 1e-50 } }"), HasSubstr("lr is 1e-50"));
  EXPECT_THAT(rule_refusal("clip_norm: 1"), HasSubstr("no optimizer"));
}

TEST(update_rule, the_optimizer_gets_the_learning_rate_of_the_step) {
  const auto rule = make_rule("optimizer { sgd { lr: 2 } } lr_schedule { step { step_size: 1 gamma: 0.5 } }");
  floats parameters{0};
  for (std::uint64_t step = 0; step < 3; ++step)
    rule.update({{step}, 1}, floats{1}, parameters, parameters, {});
  EXPECT_EQ(parameters[0], -(2.0F + 1.0F + 0.5F));
}

} // namespace
} // namespace dlrun::engine
