#include "kernels/cpu/activations.hpp"

#include <cmath>
#include <dlrun/check.hpp>

namespace dlrun::kernels::cpu {
namespace {

constexpr float root_half = 0.70710678F;       // sqrt(1/2)
constexpr float density_at_zero = 0.39894228F; // 1 / sqrt(2 pi)
constexpr float tanh_scale = 0.79788456F;      // sqrt(2 / pi)
constexpr float tanh_cubic = 0.044715F;

float logistic(float x) { return 1.0F / (1.0F + std::exp(-x)); }

/// Of the standard normal distribution.
float normal_cumulative(float x) { return 0.5F * (1.0F + std::erf(x * root_half)); }

float gelu_slope(float x) { return normal_cumulative(x) + x * density_at_zero * std::exp(-0.5F * x * x); }

float tanh_inside(float x) { return std::tanh(tanh_scale * (x + tanh_cubic * x * x * x)); }

float gelu_tanh_slope(float x) {
  const float t = tanh_inside(x);
  const float inner = tanh_scale * (1.0F + 3.0F * tanh_cubic * x * x);
  return 0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * inner;
}

float silu_slope(float x) {
  const float s = logistic(x);
  return s * (1.0F + x * (1.0F - s));
}

/// y[i] = function(x[i]).
template <class Function>
void map(std::span<const float> x, std::span<float> y, Function function) {
  const float* const in = x.data();
  float* const out = y.data();
  for (std::size_t i = 0; i < y.size(); ++i) out[i] = function(in[i]);
}

/// dx[i] = dy[i] * slope(value[i]).
template <class Slope>
void map_backward(std::span<const float> value, std::span<const float> dy, std::span<float> dx, Slope slope) {
  const float* const at = value.data();
  const float* const in = dy.data();
  float* const out = dx.data();
  for (std::size_t i = 0; i < dx.size(); ++i) out[i] = in[i] * slope(at[i]);
}

} // namespace

void activate(activation kind, float slope, std::span<const float> x, std::span<float> y) {
  DLRUN_CHECK(x.size() == y.size(), "an activation of {} floats in, {} out", x.size(), y.size());
  switch (kind) {
  case activation::gelu: return map(x, y, [](float v) { return v * normal_cumulative(v); });
  case activation::gelu_tanh: return map(x, y, [](float v) { return 0.5F * v * (1.0F + tanh_inside(v)); });
  case activation::silu: return map(x, y, [](float v) { return v * logistic(v); });
  case activation::sigmoid: return map(x, y, logistic);
  case activation::tanh: return map(x, y, [](float v) { return std::tanh(v); });
  case activation::leaky_relu: return map(x, y, [slope](float v) { return v > 0.0F ? v : slope * v; });
  }
}

void activate_backward(activation kind, float slope, std::span<const float> x, std::span<const float> y,
                       std::span<const float> dy, std::span<float> dx) {
  DLRUN_CHECK(x.size() == dy.size() && y.size() == dy.size() && dx.size() == dy.size(),
              "an activation's gradient of sizes {}, {}, {} and {}", x.size(), y.size(), dy.size(),
              dx.size());
  switch (kind) {
  case activation::gelu: return map_backward(x, dy, dx, gelu_slope);
  case activation::gelu_tanh: return map_backward(x, dy, dx, gelu_tanh_slope);
  case activation::silu: return map_backward(x, dy, dx, silu_slope);
  case activation::sigmoid: return map_backward(y, dy, dx, [](float v) { return v * (1.0F - v); });
  case activation::tanh: return map_backward(y, dy, dx, [](float v) { return 1.0F - v * v; });
  case activation::leaky_relu:
    return map_backward(x, dy, dx, [slope](float v) { return v > 0.0F ? 1.0F : slope; });
  }
}

} // namespace dlrun::kernels::cpu
