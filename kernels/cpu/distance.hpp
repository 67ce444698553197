/// Losses that compare each output with a number: PyTorch's bce_with_logits, mse, l1, huber.
///
/// `outputs` and `targets` are (rows, width). Each returns the sum over the rows, in order and in
/// double, of the MEAN over a row's elements, and writes the gradient of that by the outputs (=),
/// same shape, unless `gradient` is empty. Divided by the rows it is torch's reduction="mean". What
/// is not a number in an output is none in the result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dlrun::kernels::cpu {

enum class distance_kind : std::uint8_t { bce_with_logits, mse, l1, huber };

/// x is an output, y its target in [0, 1], s the sigmoid: -(pos_weight y log s(x) + (1 - y) log(1 -
/// s(x))), without overflow. `pos_weight` is (width), (1) or empty: 1 each.
double bce_with_logits(std::span<const float> outputs, std::span<const float> targets, std::size_t width,
                       std::span<const double> pos_weight, std::span<float> gradient);
/// (x - y)^2.
double mse(std::span<const float> outputs, std::span<const float> targets, std::size_t width,
           std::span<float> gradient);
/// |x - y|; where they are equal, the gradient is 0.
double l1(std::span<const float> outputs, std::span<const float> targets, std::size_t width,
          std::span<float> gradient);
/// (x - y)^2 / 2 up to a distance of `delta` (above 0), delta (|x - y| - delta / 2) beyond (P.
/// Huber, "Robust Estimation of a Location Parameter", 1964).
double huber(std::span<const float> outputs, std::span<const float> targets, std::size_t width, double delta,
             std::span<float> gradient);

/// 1 / (1 + exp(-x)), without overflow.
double sigmoid(double x);

} // namespace dlrun::kernels::cpu
