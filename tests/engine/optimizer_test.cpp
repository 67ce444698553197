#include "engine/optimizer.hpp"

#include "tests/engine/spec_builder.hpp"

#include <limits>

namespace dlrun::engine {
namespace {

using ::testing::HasSubstr;
using testing::parse;

optimizer make(const std::string& text) { return optimizer::build(parse<spec::OptimizerSpec>(text)).value(); }

std::string optimizer_refusal(const std::string& text) {
  const auto built = optimizer::build(parse<spec::OptimizerSpec>(text));
  EXPECT_FALSE(built.has_value()) << text;
  return built ? "" : built.error().message;
}

TEST(optimizer, says_how_much_state_it_needs) {
  EXPECT_EQ(make("sgd { lr: 0.1 }").state_floats_per_parameter(), 0U);
  EXPECT_EQ(make("sgd { lr: 0.1 momentum: 0.9 }").state_floats_per_parameter(), 1U);
  EXPECT_EQ(make("adam {}").state_floats_per_parameter(), 2U);
}

TEST(optimizer, names_its_state_as_pytorch_does) {
  using planes = std::vector<std::string_view>;
  EXPECT_EQ(make("sgd { lr: 0.1 }").state_planes(), planes{});
  EXPECT_EQ(make("sgd { lr: 0.1 momentum: 0.9 nesterov: true }").state_planes(), planes{"momentum_buffer"});
  EXPECT_EQ(make("adamw {}").state_planes(), (planes{"exp_avg", "exp_avg_sq"}));
  EXPECT_EQ(make("adam { amsgrad: true }").state_planes(),
            (planes{"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}));
  EXPECT_EQ(make("adagrad {}").state_planes(), planes{"sum"});
  EXPECT_EQ(make("rmsprop {}").state_planes(), planes{"square_avg"});
  EXPECT_EQ(make("rmsprop { centered: true }").state_planes(), (planes{"square_avg", "grad_avg"}));
  EXPECT_EQ(make("rmsprop { centered: true momentum: 0.1 }").state_planes(),
            (planes{"square_avg", "grad_avg", "momentum_buffer"}));
}

TEST(optimizer, says_what_state_is_before_the_first_step) {
  std::vector<float> state(3, 7.0F);
  make("adagrad { initial_accumulator_value: 0.25 }").start_state(state);
  EXPECT_EQ(state, std::vector<float>(3, 0.25F));
  make("adam {}").start_state(state);
  EXPECT_EQ(state, std::vector<float>(3, 0.0F));
}

TEST(optimizer, refuses_impossible_values_by_name) {
  EXPECT_THAT(optimizer_refusal(""), HasSubstr("no optimizer"));
  EXPECT_THAT(optimizer_refusal("sgd {}"), HasSubstr("lr is missing"));
  EXPECT_THAT(optimizer_refusal("sgd { lr: -1 }"), HasSubstr("lr is -1"));
  EXPECT_THAT(optimizer_refusal("sgd { lr: inf }"), HasSubstr("lr is inf"));
  EXPECT_THAT(optimizer_refusal("sgd { lr: 1 momentum: nan }"), HasSubstr("momentum is nan"));
  EXPECT_THAT(optimizer_refusal("adam { betas: [0.9] }"), HasSubstr("betas has 1 values"));
  EXPECT_THAT(optimizer_refusal("adam { betas: [0.9, 1] }"), HasSubstr("betas[1] is 1"));
  EXPECT_THAT(optimizer_refusal("adam { eps: -1e-8 }"), HasSubstr("eps"));
  EXPECT_THAT(optimizer_refusal("adam { weight_decay: -1 }"), HasSubstr("adam: weight_decay is -1"));
  EXPECT_THAT(optimizer_refusal("adamw { betas: [1, 0.9] }"), HasSubstr("adamw: betas[0] is 1"));
  EXPECT_THAT(optimizer_refusal("sgd { lr: 1 dampening: 2 }"), HasSubstr("dampening is 2"));
  EXPECT_THAT(optimizer_refusal("sgd { lr: 1 nesterov: true }"), HasSubstr("nesterov needs a momentum"));
  EXPECT_THAT(optimizer_refusal("sgd { lr: 1 nesterov: true momentum: 0.9 dampening: 0.1 }"),
              HasSubstr("nesterov needs a momentum above 0 and a dampening of 0"));
  EXPECT_THAT(optimizer_refusal("adagrad { initial_accumulator_value: -1 }"),
              HasSubstr("adagrad: initial_accumulator_value is -1"));
  EXPECT_THAT(optimizer_refusal("adagrad { lr_decay: nan }"), HasSubstr("lr_decay is nan"));
  EXPECT_THAT(optimizer_refusal("rmsprop { alpha: 1.5 }"), HasSubstr("rmsprop: alpha is 1.5"));
  EXPECT_THAT(optimizer_refusal("rmsprop { momentum: -0.1 }"), HasSubstr("momentum is -0.1"));
}

/// Of the vectors below: more than what is streamed at a time.
constexpr std::size_t length = 2500;

/// Three steps over `cuts` pieces of one vector, in place or from buffer to buffer, and so the
/// state.
std::vector<float> train(const optimizer& rule, const std::vector<std::size_t>& cuts, bool in_place,
                         bool streams = false, bool state_in_place = true) {
  std::vector<float> from(length), to(length), gradient(length);
  for (std::size_t i = 0; i < length; ++i) {
    from[i] = 0.0004F * static_cast<float>(i) - 0.3F;
    gradient[i] = 0.5F - 0.00052F * static_cast<float>(i);
  }
  std::vector<std::vector<float>> states;
  for (std::size_t c = 0; c + 1 < cuts.size(); ++c)
    rule.start_state(states.emplace_back((cuts[c + 1] - cuts[c]) * rule.state_floats_per_parameter()));
  for (std::uint64_t step = 0; step < 3; ++step) {
    for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
      const std::size_t begin = cuts[c], size = cuts[c + 1] - cuts[c];
      const auto in = std::span(from).subspan(begin, size);
      const auto before = states[c];
      std::vector<float> after(state_in_place ? 0 : before.size(), -1.0F);
      rule.update({{step}, rule.lr(), 0.125F, 0.06F, 0.9F, streams}, std::span(gradient).subspan(begin, size),
                  in, in_place ? in : std::span(to).subspan(begin, size),
                  state_in_place ? kernels::cpu::update_state{states[c]}
                                 : kernels::cpu::update_state{states[c], after});
      if (state_in_place) continue;
      EXPECT_EQ(states[c], before) << "the state before a step stays";
      states[c] = after;
    }
    if (!in_place) std::swap(from, to);
  }
  return from;
}

TEST(optimizer, any_cut_of_the_parameters_buffering_and_store_give_the_same_bits) {
  for (const auto* text :
       {"sgd { lr: 0.1 }", "sgd { lr: 0.1 weight_decay: 0.1 }", "sgd { lr: 0.1 momentum: 0.9 }",
        "sgd { lr: 0.1 momentum: 0.9 nesterov: true weight_decay: 0.1 }", "adam {}",
        "adam { weight_decay: 0.1 amsgrad: true }", "adamw {}", "adagrad { weight_decay: 0.1 }",
        "adagrad { initial_accumulator_value: 0.1 lr_decay: 0.5 }", "rmsprop {}",
        "rmsprop { centered: true momentum: 0.9 weight_decay: 0.1 }"}) {
    const auto rule = make(text);
    const auto whole = train(rule, {0, length}, true);
    EXPECT_EQ(whole, train(rule, {0, length}, false)) << text;
    EXPECT_EQ(whole, train(rule, {0, 1, 33, 64, 99, length}, true)) << text;
    EXPECT_EQ(whole, train(rule, {0, 7, 50, length}, false)) << text;
    for (const bool streams : {false, true})
      EXPECT_EQ(whole, train(rule, {0, 7, 50, length}, false, streams, false)) << text;
    for (const bool in_place : {false, true})
      EXPECT_EQ(whole, train(rule, {0, 1, 3, 6, 16, 1040, length}, in_place, true)) << text;
  }
}

TEST(optimizer_DeathTest, state_of_the_wrong_size_is_a_broken_invariant) {
  std::vector<float> parameters(4), gradient(4), state(4);
  EXPECT_DEATH(make("adam {}").update({}, gradient, parameters, parameters, state), "state of 4 floats");
}

TEST(update_buffer, moves_a_statistic_towards_the_mean_over_the_slots) {
  const std::vector<float> running{1.0F, 0.0F}, sums{8.0F, -4.0F};
  std::vector<float> out(2);
  update_buffer(0.25F, 0.5F, sums, running, out);
  EXPECT_EQ(out, (std::vector<float>{1.5F, -0.5F}));
  update_buffer(0.25F, 0.0F, sums, running, out);
  EXPECT_EQ(out, running);
}

} // namespace
} // namespace dlrun::engine
