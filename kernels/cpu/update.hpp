/// Optimizer steps over flat blocks, element by element: the result of an element depends on that element
/// alone, so blocks may be cut and placed in any way. One pass over memory each; they run at memory
/// bandwidth.
///
/// Everywhere g[i] = gradient_sum[i] * scale. `in` is read and `out` written; they may be the same span
/// (update in place) or disjoint (double buffering). Optimizer state is updated in place. All spans of a call
/// have one size.
#pragma once

#include <span>

namespace dlrun::kernels::cpu {

/// Stochastic gradient descent: out = in - lr * g.
void sgd(float lr, float scale, std::span<const float> gradient_sum, std::span<const float> in,
         std::span<float> out);

/// SGD with momentum as PyTorch has it (no dampening): velocity = momentum * velocity + g; out = in - lr *
/// velocity. A velocity of zero gives PyTorch's first step, where the velocity is the gradient itself.
void sgd_momentum(float lr, float momentum, float scale, std::span<const float> gradient_sum,
                  std::span<const float> in, std::span<float> out, std::span<float> velocity);

/// Constants of one Adam step, the same for all elements (Kingma and Ba 2015, algorithm 1, in PyTorch's
/// form).
struct adam_step {
  float beta1, beta2;
  float one_minus_beta1, one_minus_beta2; ///< rounded from double: 1 - beta in float would lose digits
  float step_size;                        ///< lr / (1 - beta1^t), t counted from 1
  float sqrt_bias_correction2;            ///< sqrt(1 - beta2^t)
  float eps;
};

/// m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g * g;
/// out = in - step_size * m / (sqrt(v) / sqrt_bias_correction2 + eps).
void adam(const adam_step& step, float scale, std::span<const float> gradient_sum, std::span<const float> in,
          std::span<float> out, std::span<float> m, std::span<float> v);

/// Running statistics of batch_norm: out = (1 - momentum) * in + momentum * (statistic_sum * scale).
void running_statistic(float momentum, float scale, std::span<const float> statistic_sum,
                       std::span<const float> in, std::span<float> out);

} // namespace dlrun::kernels::cpu
