/// Smooth activations, element by element. Their functions are those of <cmath>, called for one
/// element at a time, so that where an element lies changes no bit.
#pragma once

#include <cstdint>
#include <span>

namespace dlrun::kernels::cpu {

enum class activation : std::uint8_t {
  gelu,       ///< x Phi(x); Hendrycks and Gimpel 2016
  gelu_tanh,  ///< its approximation by tanh, section 2 there
  silu,       ///< x sigmoid(x)
  sigmoid,    ///< 1 / (1 + exp(-x))
  tanh,       ///< tanh(x)
  leaky_relu, ///< x where x > 0, otherwise slope x
};

/// y[i] = f(x[i]). `slope` is of leaky_relu. NaN stays NaN. In place allowed.
void activate(activation kind, float slope, std::span<const float> x, std::span<float> y);

/// Whether activate_backward() reads y and not x; otherwise it reads x and not y.
constexpr bool slope_follows_from_output(activation kind) {
  return kind == activation::sigmoid || kind == activation::tanh;
}

/// dx[i] = dy[i] f'(x[i]), where y = f(x). dx may be dy.
void activate_backward(activation kind, float slope, std::span<const float> x, std::span<const float> y,
                       std::span<const float> dy, std::span<float> dx);

} // namespace dlrun::kernels::cpu
