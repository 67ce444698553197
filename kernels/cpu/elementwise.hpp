/// Activations and masks, element by element.
#pragma once

#include <span>

namespace dlrun::kernels::cpu {

/// output[i] = max(input[i], 0); NaN stays NaN, as in PyTorch. In place allowed.
void relu(std::span<const float> input, std::span<float> output);

/// input_gradient[i] = output[i] > 0 ? output_gradient[i] : 0. In place allowed.
void relu_backward(std::span<const float> output, std::span<const float> output_gradient,
                   std::span<float> input_gradient);

/// output[i] = input[i] * mask[i]. In place allowed.
void multiply(std::span<const float> input, std::span<const float> mask, std::span<float> output);

} // namespace dlrun::kernels::cpu
