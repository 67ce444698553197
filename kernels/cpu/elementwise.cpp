#include "kernels/cpu/elementwise.hpp"

#include <dlrun/check.hpp>

namespace dlrun::kernels::cpu {

void relu(std::span<const float> input, std::span<float> output) {
  DLRUN_CHECK(input.size() == output.size(), "relu: {} floats in, {} out", input.size(), output.size());
  const float* const x = input.data();
  float* const y = output.data();
#pragma GCC ivdep // each element on its own: spans are disjoint or the same
  for (std::size_t i = 0; i < output.size(); ++i) y[i] = x[i] <= 0.0F ? 0.0F : x[i];
}

void relu_backward(std::span<const float> output, std::span<const float> output_gradient,
                   std::span<float> input_gradient) {
  DLRUN_CHECK(output.size() == output_gradient.size() && output.size() == input_gradient.size(),
              "relu_backward: sizes {}, {} and {} differ", output.size(), output_gradient.size(),
              input_gradient.size());
  const float* const y = output.data();
  const float* const dy = output_gradient.data();
  float* const dx = input_gradient.data();
#pragma GCC ivdep // each element on its own: spans are disjoint or the same
  for (std::size_t i = 0; i < input_gradient.size(); ++i) dx[i] = y[i] <= 0.0F ? 0.0F : dy[i];
}

void multiply(std::span<const float> input, std::span<const float> mask, std::span<float> output) {
  DLRUN_CHECK(input.size() == output.size() && mask.size() == output.size(),
              "multiply: sizes {}, {} and {} differ", input.size(), mask.size(), output.size());
  const float* const x = input.data();
  const float* const m = mask.data();
  float* const y = output.data();
#pragma GCC ivdep // each element on its own: spans are disjoint or the same
  for (std::size_t i = 0; i < output.size(); ++i) y[i] = x[i] * m[i];
}

} // namespace dlrun::kernels::cpu
