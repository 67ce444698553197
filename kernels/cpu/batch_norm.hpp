/// Batch normalisation over rows of channels: Ioffe and Szegedy 2015, algorithm 1.
#pragma once

#include <cstdint>
#include <span>

namespace dlrun::kernels::cpu {

/// Statistics of each channel, one value a channel. `inverse_deviation` is 1 / sqrt(biased variance +
/// eps).
struct channel_statistics {
  std::span<float> mean;
  std::span<float> unbiased_variance; ///< sum of squares / (rows - 1)
  std::span<float> inverse_deviation;
};

/// Statistics of x, which is (rows, channels) with at least 2 rows. Sums are taken in double, row
/// after row.
void batch_statistics(std::int64_t rows, float eps, std::span<const float> x, const channel_statistics& out);

/// out[c] = 1 / sqrt(variance[c] + eps).
void inverse_deviation(float eps, std::span<const float> variance, std::span<float> out);

/// y = (x - mean) * inverse_deviation * weight + bias for each channel. `weight` and `bias` may be
/// empty: 1 and 0. x and y are (rows, channels).
void normalise(std::span<const float> mean, std::span<const float> inverse_deviation,
               std::span<const float> weight, std::span<const float> bias, std::span<const float> x,
               std::span<float> y);

/// Gradients through normalise() and the statistics. With xhat = (x - mean) * inverse_deviation:
/// dbias = sum dy, dweight = sum dy * xhat, dx = weight * inverse_deviation * (dy - dbias / rows -
/// xhat * dweight / rows). dweight, dbias (empty when the layer has none) and dx (empty when not
/// wanted) are overwritten.
void batch_norm_backward(std::int64_t rows, std::span<const float> mean,
                         std::span<const float> inverse_deviation, std::span<const float> weight,
                         std::span<const float> x, std::span<const float> dy, std::span<float> dweight,
                         std::span<float> dbias, std::span<float> dx);

} // namespace dlrun::kernels::cpu
