/// The optimizer of a job: turns a reduced gradient into the next version of the parameters.
#pragma once

#include "kernels/cpu/update.hpp"

#include <cstdint>
#include <dlrun/error.hpp>
#include <dlrun/ids.hpp>
#include <limits>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

namespace dlrun::spec {
class OptimizerSpec;
}

namespace dlrun::engine {

/// What one update takes beside the numbers of its elements.
struct update_terms {
  step_id step;    ///< Adam and Adagrad count from it
  double lr = 0;   ///< learning rate of this step
  float scale = 1; ///< 1 / records of the step: makes the mean of the sums
  float limit = std::numeric_limits<float>::infinity(); ///< the mean is clipped to [-limit, limit]
  float coefficient = 1;                                ///< and then multiplied by this
  /// Writes parameters_out past the caches: for vectors far larger than these. Changes no bit.
  bool streams = false;
};

/// PyTorch's SGD, Adam, AdamW, Adagrad and RMSprop, with all of their arguments that change
/// numbers. Holds only constants: state lives with the caller, who passes it in. Element by
/// element, so blocks may be cut and placed in any way. Thread-safe: all members are const.
class optimizer {
public:
  /// Errors: no kind, a value outside its range (all >= 0, betas in [0, 1)), nesterov without
  /// momentum or with dampening.
  static result<optimizer> build(const spec::OptimizerSpec& spec);

  /// The state of each parameter, by PyTorch's names, e.g. "exp_avg", "exp_avg_sq": one float each.
  /// Empty for plain sgd.
  std::vector<std::string_view> state_planes() const;
  std::uint32_t state_floats_per_parameter() const {
    return static_cast<std::uint32_t>(state_planes().size());
  }
  /// Fills the state of a part of the parameters, as update() takes it, with what it is before the
  /// first step: zero, but for Adagrad's initial_accumulator_value.
  void start_state(std::span<float> state) const;

  /// The learning rate as specified, before any schedule.
  double lr() const { return lr_; }

  /// One update. `gradient_sum` holds sums over the step's records. `parameters_out` may be
  /// `parameters_in` itself or disjoint from it. All of one size n, any part of a tensor. `state`
  /// has n * state_floats_per_parameter() floats, plane after plane (all first moments, then all
  /// second moments): who cuts parameters into pieces keeps each piece's state apart.
  /// @returns whether all of `parameters_out` is finite.
  bool update(const update_terms& terms, std::span<const float> gradient_sum,
              std::span<const float> parameters_in, std::span<float> parameters_out,
              const kernels::cpu::update_state& state) const;

private:
  struct sgd_rule {
    double momentum, dampening, weight_decay;
    bool nesterov;
  };
  struct adam_rule {
    double beta1, beta2, eps, weight_decay;
    bool amsgrad;
    bool decoupled; ///< weight decay as in AdamW
  };
  struct adagrad_rule {
    double lr_decay, weight_decay, initial_accumulator_value, eps;
  };
  struct rmsprop_rule {
    double alpha, eps, weight_decay, momentum;
    bool centered;
  };
  class builder;
  struct call;

  double lr_ = 0;
  std::variant<sgd_rule, adam_rule, adagrad_rule, rmsprop_rule> rule_;
};

/// One update of a running statistic: out = (1 - momentum) * in + momentum * statistic_sum *
/// mean_scale, where `statistic_sum` is the sum over the step's slots and `mean_scale` is 1 /
/// slots. Spans of one size; out may be in. @returns whether all of `out` is finite.
bool update_buffer(float mean_scale, float momentum, std::span<const float> statistic_sum,
                   std::span<const float> in, std::span<float> out);

} // namespace dlrun::engine
