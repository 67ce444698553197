/// Optimizer steps over flat blocks, element by element: the result of an element depends on that
/// element alone, so blocks may be cut and placed in any way. One pass over memory each; they run
/// at memory bandwidth.
///
/// Everywhere g[i] is what gradient_terms says. `in` is read and `out` written; they may be the
/// same span (update in place) or disjoint (double buffering), and so for optimizer state. All
/// spans of a call have one size, but for state that is not wanted: an empty one.
///
/// Each update returns whether all of `out` is finite: an update of finite numbers may divide by
/// zero or grow beyond a float.
///
/// The rules are PyTorch's (torch/optim of 1.13), up to the last rounding.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace dlrun::kernels::cpu {

/// How `out` is written. `streamed`: past the caches, for vectors that are far larger than these
/// and that nobody reads soon, since an ordinary store first reads the line that it writes to. No
/// bit depends on it.
enum class output_store { cached, streamed };

/// Optimizer state before and after an update: floats of one size, in place or disjoint.
struct update_state {
  std::span<const float> before;
  std::span<float> after;

  update_state() = default;
  /// Updated in place.
  update_state(std::span<float> in_place)
      : before(in_place)
      , after(in_place) {}
  update_state(std::vector<float>& in_place)
      : update_state(std::span{in_place}) {}
  update_state(std::span<const float> read, std::span<float> written)
      : before(read)
      , after(written) {}

  bool empty() const { return after.empty(); }
  std::size_t size() const { return after.size(); }
  update_state subspan(std::size_t first, std::size_t count) const {
    return {before.subspan(first, count), after.subspan(first, count)};
  }
};

/// How an element of the gradient comes from its sum over the records of a step:
/// g = clamp(gradient_sum * scale, -limit, limit) * coefficient. NaN stays NaN.
struct gradient_terms {
  float scale = 1;                                      ///< 1 / records: makes the mean
  float limit = std::numeric_limits<float>::infinity(); ///< of clipping by value
  float coefficient = 1;                                ///< of clipping by norm
};

/// Sum of the squares of g over a block, in double precision: eight sums over the elements 0, 8,
/// 16, ..., 1, 9, 17, ... and so on, then the sum of those in pairs. A function of the whole block,
/// so blocks must be cut in one way wherever bits are compared.
double sum_of_squares(const gradient_terms& terms, std::span<const float> gradient_sum);

/// Stochastic gradient descent: out = in - lr * (g + weight_decay * in).
bool sgd(float lr, float weight_decay, const gradient_terms& terms, std::span<const float> gradient_sum,
         std::span<const float> in, std::span<float> out, output_store store = output_store::cached);

/// Constants of one step of SGD with momentum.
struct momentum_step {
  float lr;
  float momentum;
  float gradient_weight = 1; ///< 1 - dampening; 1 in the first step
  float weight_decay = 0;
  bool nesterov = false;
};

/// d = g + weight_decay * in; velocity = momentum * velocity + gradient_weight * d; out = in - lr *
/// velocity, with nesterov in - lr * (d + momentum * velocity). A velocity of zero gives PyTorch's
/// first step, where the velocity is the gradient itself.
bool sgd_momentum(const momentum_step& step, const gradient_terms& terms, std::span<const float> gradient_sum,
                  std::span<const float> in, std::span<float> out, update_state velocity,
                  output_store store = output_store::cached);

/// Constants of one Adam step, the same for all elements (Kingma and Ba 2015, algorithm 1, in
/// PyTorch's form).
struct adam_step {
  float beta1, beta2;
  float one_minus_beta1, one_minus_beta2; ///< rounded from double: 1 - beta in float would lose digits
  float step_size;                        ///< lr / (1 - beta1^t), t counted from 1
  float sqrt_bias_correction2;            ///< sqrt(1 - beta2^t)
  float eps;
  float weight_decay = 0; ///< of Adam: added to the gradient
  float keep = 1;         ///< of AdamW: 1 - lr * weight_decay (Loshchilov and Hutter 2019)
};

/// d = g + weight_decay * in; m = beta1 * m + (1 - beta1) * d; v = beta2 * v + (1 - beta2) * d * d;
/// out = keep * in - step_size * m / (sqrt(v) / sqrt_bias_correction2 + eps). With `max_v` not
/// empty (AMSGrad, Reddi, Kale and Kumar 2018): max_v = max(max_v, v), which then stands for v in
/// `out`.
bool adam(const adam_step& step, const gradient_terms& terms, std::span<const float> gradient_sum,
          std::span<const float> in, std::span<float> out, update_state m, update_state v, update_state max_v,
          output_store store = output_store::cached);

/// Constants of one Adagrad step (Duchi, Hazan and Singer 2011).
struct adagrad_step {
  float lr; ///< of this step, lr_decay included
  float eps;
  float weight_decay = 0;
};

/// d = g + weight_decay * in; sum = sum + d * d; out = in - lr * d / (sqrt(sum) + eps).
bool adagrad(const adagrad_step& step, const gradient_terms& terms, std::span<const float> gradient_sum,
             std::span<const float> in, std::span<float> out, update_state sum,
             output_store store = output_store::cached);

/// Constants of one RMSProp step (Tieleman and Hinton 2012; centered: Graves 2013, equations 38 to
/// 45).
struct rmsprop_step {
  float lr;
  float alpha, one_minus_alpha; ///< the second rounded from double
  float eps;
  float weight_decay = 0;
  float momentum = 0;
};

/// d = g + weight_decay * in; square = alpha * square + (1 - alpha) * d * d; a = square. With
/// `mean` not empty (centered): mean = alpha * mean + (1 - alpha) * d; a = square - mean * mean,
/// which rounding may not take below zero. out = in - lr * d / (sqrt(a) + eps). With `velocity` not
/// empty: velocity = momentum * velocity + d / (sqrt(a) + eps); out = in - lr * velocity.
bool rmsprop(const rmsprop_step& step, const gradient_terms& terms, std::span<const float> gradient_sum,
             std::span<const float> in, std::span<float> out, update_state square, update_state mean,
             update_state velocity, output_store store = output_store::cached);

/// Running statistics of batch_norm: out = (1 - momentum) * in + momentum * (statistic_sum *
/// scale).
bool running_statistic(float momentum, float scale, std::span<const float> statistic_sum,
                       std::span<const float> in, std::span<float> out);

} // namespace dlrun::kernels::cpu
