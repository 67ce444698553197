// Optimizers, schedules and clipping against what PyTorch computed
// (tests/engine/data/generate_optimizer_vectors.py).
#include "engine/update_rule.hpp"
#include "tests/engine/data/pytorch_optimizer_vectors.hpp"
#include "tests/engine/spec_builder.hpp"

#include <cmath>

namespace dlrun::engine {
namespace {

using testing::parse;
using floats = std::vector<float>;

constexpr std::uint64_t records = 4; // of a step: gradients arrive as four times their mean

/// Gradients of one step, of a list of steps one after the other, as sums.
floats summed(const floats& means, std::size_t step, std::size_t size) {
  floats sums(size);
  for (std::size_t i = 0; i < size; ++i) sums[i] = records * means[step * size + i];
  return sums;
}

void expect_close(std::span<const float> actual, std::span<const float> expected, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (std::size_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], 5e-7 * std::max(1.0F, std::abs(expected[i])))
        << what << "[" << i << "]";
}

TEST(pytorch_update, every_optimizer_takes_the_same_steps_while_gradients_change) {
  const auto size = pytorch::update_start.size();
  for (const auto& [specification, expected] : pytorch::update_cases) {
    const auto rule = optimizer::build(parse<spec::OptimizerSpec>(specification)).value();
    floats parameters = pytorch::update_start, state(size * rule.state_floats_per_parameter());
    rule.start_state(state);
    for (std::size_t step = 0; step * size < expected.size(); ++step) {
      const auto sums = summed(pytorch::update_gradients, step, size);
      rule.update({{step}, rule.lr(), 1.0F / records}, sums, parameters, parameters, state);
      expect_close(parameters, std::span(expected).subspan(step * size, size),
                   fmt::format("{} after step {}", specification, step));
    }
  }
}

TEST(pytorch_update, every_schedule_gives_the_same_learning_rates_a_step) {
  for (const auto& [specification, rates] : pytorch::rate_cases) {
    const auto made =
        schedule::build(parse<spec::LrScheduleSpec>(specification), {5, rates.size() / 5}).value();
    for (std::size_t step = 0; step < rates.size(); ++step)
      EXPECT_NEAR(made.lr({step}, 0.3), rates[step], 1e-14) << specification << " step " << step;
  }
}

/// The warm-up counts steps whatever the unit is.
TEST(pytorch_update, every_schedule_gives_the_same_learning_rates_an_epoch) {
  constexpr auto per_epoch = pytorch::rate_steps_per_epoch;
  for (const auto& [specification, rates] : pytorch::rate_cases) {
    if (std::string_view{specification}.find("warmup") != std::string_view::npos) continue;
    const auto text = std::string{specification} + " unit: 'epoch'";
    const auto made = schedule::build(parse<spec::LrScheduleSpec>(text), {per_epoch, rates.size()}).value();
    for (std::size_t step = 0; step < per_epoch * rates.size(); ++step)
      EXPECT_NEAR(made.lr({step}, 0.3), rates[step / per_epoch], 1e-14) << text << " step " << step;
  }
}

TEST(pytorch_update, gradients_are_clipped_by_the_same_amount) {
  const auto size = pytorch::clip_start.size();
  for (const auto& [specification, expected] : pytorch::clip_cases) {
    const auto rule = update_rule::build(parse<spec::TrainSpec>(specification), {}).value();
    floats parameters = pytorch::clip_start, state(size * rule.optimizer().state_floats_per_parameter());
    rule.optimizer().start_state(state);
    for (std::size_t step = 0; step * size < expected.size(); ++step) {
      const auto sums = summed(pytorch::clip_gradients, step, size);
      const auto norm = std::sqrt(rule.sum_of_squares(records, sums));
      rule.update({{step}, records, norm}, sums, parameters, parameters, state);
      expect_close(parameters, std::span(expected).subspan(step * size, size),
                   fmt::format("{} after step {}", specification, step));
    }
  }
}

} // namespace
} // namespace dlrun::engine
