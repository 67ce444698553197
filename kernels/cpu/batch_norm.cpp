#include "kernels/cpu/batch_norm.hpp"

#include <cmath>
#include <dlrun/check.hpp>
#include <vector>

namespace dlrun::kernels::cpu {
namespace {

/// sum[c] += term(row, c) over the rows, in row order. Channels are innermost, so the inner loop is
/// the vector loop and the association of a channel's sum is the row order.
template <class Term>
std::vector<double> sum_rows(std::int64_t rows, std::size_t channels, Term term) {
  std::vector<double> sums(channels, 0.0);
  double* const sum = sums.data();
  for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r)
    for (std::size_t c = 0; c < channels; ++c) sum[c] += term(r * channels + c, c);
  return sums;
}

std::vector<float> scales(std::span<const float> inverse_deviation, std::span<const float> weight) {
  std::vector<float> scale(inverse_deviation.begin(), inverse_deviation.end());
  for (std::size_t c = 0; c < weight.size(); ++c) scale[c] *= weight[c];
  return scale;
}

} // namespace

void batch_statistics(std::int64_t rows, float eps, std::span<const float> x, const channel_statistics& out) {
  const std::size_t channels = out.mean.size();
  DLRUN_CHECK(rows >= 2 && x.size() == static_cast<std::size_t>(rows) * channels,
              "{} floats for {} rows of {} channels", x.size(), rows, channels);
  const float* const values = x.data();
  auto means = sum_rows(rows, channels,
                        [values](std::size_t i, std::size_t) { return static_cast<double>(values[i]); });
  for (double& mean : means) mean /= static_cast<double>(rows);
  const double* const mean = means.data();
  const auto squares = sum_rows(rows, channels, [values, mean](std::size_t i, std::size_t c) {
    const double distance = static_cast<double>(values[i]) - mean[c];
    return distance * distance;
  });
  for (std::size_t c = 0; c < channels; ++c) {
    out.mean[c] = static_cast<float>(mean[c]);
    out.unbiased_variance[c] = static_cast<float>(squares[c] / static_cast<double>(rows - 1));
    const double variance = squares[c] / static_cast<double>(rows);
    out.inverse_deviation[c] = static_cast<float>(1.0 / std::sqrt(variance + static_cast<double>(eps)));
  }
}

void inverse_deviation(float eps, std::span<const float> variance, std::span<float> out) {
  for (std::size_t c = 0; c < out.size(); ++c) out[c] = 1.0F / std::sqrt(variance[c] + eps);
}

void normalise(std::span<const float> mean, std::span<const float> inverse_deviation,
               std::span<const float> weight, std::span<const float> bias, std::span<const float> x,
               std::span<float> y) {
  const std::size_t channels = mean.size();
  DLRUN_CHECK(x.size() == y.size() && x.size() % channels == 0, "{} floats in, {} out, {} channels", x.size(),
              y.size(), channels);
  const auto scale_values = scales(inverse_deviation, weight);
  const std::vector<float> zero(bias.empty() ? channels : 0, 0.0F);
  const float* const shift = bias.empty() ? zero.data() : bias.data();
  const float* const scale = scale_values.data();
  const float* const centre = mean.data();
  for (std::size_t row = 0; row < x.size(); row += channels) {
    const float* const in = x.data() + row;
    float* const out = y.data() + row;
    for (std::size_t c = 0; c < channels; ++c) out[c] = (in[c] - centre[c]) * scale[c] + shift[c];
  }
}

void batch_norm_backward(std::int64_t rows, std::span<const float> mean,
                         std::span<const float> inverse_deviation, std::span<const float> weight,
                         std::span<const float> x, std::span<const float> dy, std::span<float> dweight,
                         std::span<float> dbias, std::span<float> dx) {
  const std::size_t channels = mean.size();
  DLRUN_CHECK(x.size() == dy.size() && x.size() == static_cast<std::size_t>(rows) * channels,
              "{} floats and {} of gradient for {} rows of {} channels", x.size(), dy.size(), rows, channels);
  const float* const in = x.data();
  const float* const gradient = dy.data();
  const float* const centre = mean.data();
  const float* const deviation = inverse_deviation.data();
  const auto sum_dy = sum_rows(
      rows, channels, [gradient](std::size_t i, std::size_t) { return static_cast<double>(gradient[i]); });
  const auto sum_dy_xhat = sum_rows(rows, channels, [=](std::size_t i, std::size_t c) {
    return static_cast<double>(gradient[i]) * static_cast<double>((in[i] - centre[c]) * deviation[c]);
  });
  for (std::size_t c = 0; c < dweight.size(); ++c) {
    dweight[c] = static_cast<float>(sum_dy_xhat[c]);
    dbias[c] = static_cast<float>(sum_dy[c]);
  }
  if (dx.empty()) return;
  const auto scale_values = scales(inverse_deviation, weight);
  const float* const scale = scale_values.data();
  std::vector<float> mean_dy(channels), mean_dy_xhat(channels);
  for (std::size_t c = 0; c < channels; ++c) {
    mean_dy[c] = static_cast<float>(sum_dy[c] / static_cast<double>(rows));
    mean_dy_xhat[c] = static_cast<float>(sum_dy_xhat[c] / static_cast<double>(rows));
  }
  for (std::size_t row = 0; row < x.size(); row += channels)
    for (std::size_t c = 0; c < channels; ++c) {
      const float xhat = (in[row + c] - centre[c]) * deviation[c];
      dx[row + c] = scale[c] * (gradient[row + c] - mean_dy[c] - xhat * mean_dy_xhat[c]);
    }
}

} // namespace dlrun::kernels::cpu
