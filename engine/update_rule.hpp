/// How a step's gradient becomes the next version of the parameters: schedule, clipping, optimizer.
#pragma once

#include "engine/optimizer.hpp"
#include "engine/schedule.hpp"

#include <optional>

namespace dlrun::spec {
class TrainSpec;
}

namespace dlrun::engine {

/// What an update needs to know of its step.
struct summed_step {
  step_id step;
  std::uint64_t records = 1; ///< that are summed in the gradient, at least 1
  /// Of the mean gradient of all parameters of the model, clipped by value; the root of all
  /// sum_of_squares(). Of no meaning without `clip_norm`.
  double norm = 0;
  bool streams = false; ///< as update_terms::streams
};

/// What one revision of a specification says of updates. In this order: the mean of the gradient,
/// clipping by value (torch.nn.utils.clip_grad_value_), clipping by the norm over all parameters
/// (torch.nn.utils.clip_grad_norm_), and the optimizer with the learning rate of the step. Holds
/// only constants. Thread-safe: all members are const.
class update_rule {
public:
  /// Errors (bad_spec) of optimizer and schedule, and limits that are not above 0.
  static result<update_rule> build(const spec::TrainSpec& spec, const training_length& length);

  const engine::optimizer& optimizer() const { return optimizer_; }
  double lr(step_id step) const { return schedule_.lr(step, optimizer_.lr()); }

  /// What a block of parameters adds to the square of the norm of the whole gradient. A function of
  /// the whole block.
  double sum_of_squares(std::uint64_t records, std::span<const float> gradient_sum) const;

  /// As optimizer::update().
  bool update(const summed_step& step, std::span<const float> gradient_sum,
              std::span<const float> parameters_in, std::span<float> parameters_out,
              const kernels::cpu::update_state& state) const;

private:
  update_rule(engine::optimizer optimizer, schedule schedule)
      : optimizer_(std::move(optimizer))
      , schedule_(std::move(schedule)) {}
  float coefficient(double norm) const;

  engine::optimizer optimizer_;
  schedule schedule_;
  std::optional<double> clip_value_;
  std::optional<double> clip_norm_;
};

} // namespace dlrun::engine
