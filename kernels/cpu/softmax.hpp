/// Softmax of rows, as a layer of its own; the loss cross_entropy has its own inside.
#pragma once

#include <cstdint>
#include <span>

namespace dlrun::kernels::cpu {

/// y = exp(x - max) / sum of those, for each row of `width` values. Sums are taken in double. In
/// place allowed.
void softmax(std::int64_t width, std::span<const float> x, std::span<float> y);

/// dx = y * (dy - sum over the row of dy * y). dx may be dy.
void softmax_backward(std::int64_t width, std::span<const float> y, std::span<const float> dy,
                      std::span<float> dx);

} // namespace dlrun::kernels::cpu
