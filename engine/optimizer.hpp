/// The optimizer of a job: turns a reduced gradient into the next version of the parameters.
#pragma once

#include <cstdint>
#include <dlrun/error.hpp>
#include <dlrun/ids.hpp>
#include <span>

namespace dlrun::spec {
class OptimizerSpec;
}

namespace dlrun::engine {

/// PyTorch's SGD, SGD with momentum, and Adam. Holds only constants: state lives with the caller, who passes
/// it in. Element by element, so blocks may be cut and placed in any way. Thread-safe: all members are const.
class optimizer {
public:
  /// Errors: no kind, or a value outside its range (lr, momentum and eps >= 0, betas in [0, 1)).
  static result<optimizer> build(const spec::OptimizerSpec& spec);

  /// State floats for each parameter: sgd 0, momentum 1 (velocity), adam 2 (first and second moment). All
  /// start at zero.
  std::uint32_t state_floats_per_parameter() const;

  /// One update. `gradient_sum` holds sums over the step's records; `scale` is 1 / (records of the step).
  /// `parameters_out` may be `parameters_in` itself or disjoint from it. All of one size n, any part of a
  /// tensor. `state` has n * state_floats_per_parameter() floats, plane after plane (all first moments, then
  /// all second moments), and is updated in place: who cuts parameters into pieces keeps each piece's state
  /// apart.
  void update(step_id step, float scale, std::span<const float> gradient_sum,
              std::span<const float> parameters_in, std::span<float> parameters_out,
              std::span<float> state) const;

private:
  enum class method : std::uint8_t { sgd, momentum, adam };

  method method_ = method::sgd;
  double lr_ = 0;
  double momentum_ = 0;
  double beta1_ = 0;
  double beta2_ = 0;
  double eps_ = 0;
};

/// One update of a running statistic: out = (1 - momentum) * in + momentum * statistic_sum * mean_scale,
/// where `statistic_sum` is the sum over the step's slots and `mean_scale` is 1 / slots. Spans of one size;
/// out may be in.
void update_buffer(float mean_scale, float momentum, std::span<const float> statistic_sum,
                   std::span<const float> in, std::span<float> out);

} // namespace dlrun::engine
