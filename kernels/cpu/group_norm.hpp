/// Normalisation of a record by its own statistics: Wu and He 2018 (groups of channels), Ba, Kiros
/// and Hinton 2016 (all of it).
#pragma once

#include <cstdint>
#include <span>

namespace dlrun::kernels::cpu {

/// A record is (pixels, channels). Its channels fall into `groups` of neighbours; each group of all
/// pixels has its own mean and variance. `groups` divides `channels`.
struct group_geometry {
  std::int64_t pixels = 1, channels = 1, groups = 1;
  float eps = 1e-5F; ///< added to the biased variance
  bool operator==(const group_geometry&) const = default;
};

/// y = (x - mean) * inverse_deviation * weight + bias, with mean and deviation of each record's
/// groups, which are written to `mean` and `inverse_deviation`, both (batch, groups). `weight` and
/// `bias` (channels) may be empty: 1 and 0. Statistics are taken in double.
void group_norm(const group_geometry& geometry, std::int64_t batch, std::span<const float> x,
                std::span<const float> weight, std::span<const float> bias, std::span<float> y,
                std::span<float> mean, std::span<float> inverse_deviation);

/// Gradients through group_norm() and the statistics. dweight, dbias (empty when the layer has
/// none), summed over the records in double, and dx (empty when not wanted) are overwritten.
void group_norm_backward(const group_geometry& geometry, std::int64_t batch, std::span<const float> x,
                         std::span<const float> mean, std::span<const float> inverse_deviation,
                         std::span<const float> weight, std::span<const float> dy, std::span<float> dweight,
                         std::span<float> dbias, std::span<float> dx);

} // namespace dlrun::kernels::cpu
