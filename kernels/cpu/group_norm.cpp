#include "kernels/cpu/group_norm.hpp"

#include <algorithm>
#include <cmath>
#include <dlrun/check.hpp>
#include <vector>

namespace dlrun::kernels::cpu {
namespace {

void check_groups(const group_geometry& g, std::int64_t batch, std::size_t floats) {
  DLRUN_CHECK(g.groups >= 1 && g.channels % g.groups == 0 &&
                  static_cast<std::int64_t>(floats) == batch * g.pixels * g.channels,
              "{} floats for {} records of {} pixels with {} channels in {} groups", floats, batch, g.pixels,
              g.channels, g.groups);
}

/// One record's sums and means. Channels are summed side by side, pixel after pixel, then the
/// channels of a group in order.
class record_sums {
public:
  explicit record_sums(const group_geometry& g)
      : g_(g)
      , sums_(static_cast<std::size_t>(g.channels)) {}

  /// Calls write(group, mean of term(index, channel) over the group's elements), group after group.
  template <class Term, class Write>
  void means(Term term, Write write) {
    std::ranges::fill(sums_, 0.0);
    double* const sum = sums_.data();
    for (std::int64_t p = 0; p < g_.pixels; ++p)
      for (std::int64_t c = 0; c < g_.channels; ++c) sum[c] += term(p * g_.channels + c, c);
    const std::int64_t width = g_.channels / g_.groups;
    for (std::int64_t group = 0; group < g_.groups; ++group) {
      double total = 0;
      for (std::int64_t c = group * width; c < (group + 1) * width; ++c) total += sum[c];
      write(group, total / static_cast<double>(width * g_.pixels));
    }
  }

private:
  const group_geometry& g_;
  std::vector<double> sums_;
};

/// `values` of the groups, one for each channel.
template <class Value>
void spread_groups(const group_geometry& g, const Value* values, std::vector<Value>& out) {
  const std::int64_t width = g.channels / g.groups;
  for (std::int64_t c = 0; c < g.channels; ++c) out[static_cast<std::size_t>(c)] = values[c / width];
}

/// Statistics of one record.
void take_group_statistics(const group_geometry& g, const float* x, record_sums& sums, float* mean,
                           float* inverse_deviation) {
  std::vector<double> centres(static_cast<std::size_t>(g.groups)),
      centre(static_cast<std::size_t>(g.channels));
  sums.means([x](std::int64_t i, std::int64_t) { return static_cast<double>(x[i]); },
             [&](std::int64_t group, double value) {
               centres[static_cast<std::size_t>(group)] = value;
               mean[group] = static_cast<float>(value);
             });
  spread_groups(g, centres.data(), centre);
  const double* const at = centre.data();
  sums.means(
      [x, at](std::int64_t i, std::int64_t c) {
        const double distance = static_cast<double>(x[i]) - at[c];
        return distance * distance;
      },
      [&](std::int64_t group, double variance) {
        inverse_deviation[group] = static_cast<float>(1.0 / std::sqrt(variance + static_cast<double>(g.eps)));
      });
}

/// A record's channels on the way back: its statistics, and the means that its gradient loses.
struct group_channels {
  explicit group_channels(const group_geometry& g)
      : mean(static_cast<std::size_t>(g.channels))
      , deviation(mean.size())
      , mean_gradient(mean.size())
      , mean_product(mean.size())
      , of_groups(static_cast<std::size_t>(g.groups)) {}

  std::vector<float> mean, deviation, mean_gradient, mean_product, of_groups;
};

void write_group_gradient(const group_geometry& g, const float* x, const float* w, const float* dy,
                          record_sums& sums, group_channels& at, float* dx) {
  const auto keep = [&](std::int64_t group, double value) {
    at.of_groups[static_cast<std::size_t>(group)] = static_cast<float>(value);
  };
  const float* const mean = at.mean.data();
  const float* const deviation = at.deviation.data();
  sums.means(
      [=](std::int64_t i, std::int64_t c) { return static_cast<double>(dy[i]) * static_cast<double>(w[c]); },
      keep);
  spread_groups(g, at.of_groups.data(), at.mean_gradient);
  sums.means(
      [=](std::int64_t i, std::int64_t c) {
        return static_cast<double>(dy[i]) * static_cast<double>(w[c]) *
               static_cast<double>((x[i] - mean[c]) * deviation[c]);
      },
      keep);
  spread_groups(g, at.of_groups.data(), at.mean_product);
  const float* const lost = at.mean_gradient.data();
  const float* const lost_product = at.mean_product.data();
  for (std::int64_t p = 0; p < g.pixels; ++p)
#pragma GCC ivdep // x, dy and dx are disjoint
    for (std::int64_t c = 0; c < g.channels; ++c) {
      const std::int64_t i = p * g.channels + c;
      const float xhat = (x[i] - mean[c]) * deviation[c];
      dx[i] = deviation[c] * (dy[i] * w[c] - lost[c] - xhat * lost_product[c]);
    }
}

/// dweight and dbias in the making.
struct group_parameter_sums {
  explicit group_parameter_sums(const group_geometry& g)
      : weight(static_cast<std::size_t>(g.channels))
      , bias(weight.size()) {}

  void add(const group_geometry& g, const float* x, const float* dy, const group_channels& at) {
    double* const dw = weight.data();
    double* const db = bias.data();
    const float* const mean = at.mean.data();
    const float* const deviation = at.deviation.data();
    for (std::int64_t p = 0; p < g.pixels; ++p)
      for (std::int64_t c = 0; c < g.channels; ++c) {
        const std::int64_t i = p * g.channels + c;
        dw[c] += static_cast<double>(dy[i]) * static_cast<double>((x[i] - mean[c]) * deviation[c]);
        db[c] += static_cast<double>(dy[i]);
      }
  }

  std::vector<double> weight, bias;
};

} // namespace

void group_norm(const group_geometry& g, std::int64_t batch, std::span<const float> x,
                std::span<const float> weight, std::span<const float> bias, std::span<float> y,
                std::span<float> mean, std::span<float> inverse_deviation) {
  check_groups(g, batch, x.size());
  const auto channels = static_cast<std::size_t>(g.channels);
  std::vector<float> scale(channels), centre(channels), ones(weight.empty() ? channels : 0, 1.0F),
      zeros(bias.empty() ? channels : 0, 0.0F);
  const float* const w = weight.empty() ? ones.data() : weight.data();
  const float* const shift = bias.empty() ? zeros.data() : bias.data();
  record_sums sums(g);
  for (std::int64_t n = 0; n < batch; ++n) {
    const float* const in = x.data() + n * g.pixels * g.channels;
    float* const out = y.data() + n * g.pixels * g.channels;
    take_group_statistics(g, in, sums, mean.data() + n * g.groups, inverse_deviation.data() + n * g.groups);
    spread_groups(g, mean.data() + n * g.groups, centre);
    spread_groups(g, inverse_deviation.data() + n * g.groups, scale);
    for (std::size_t c = 0; c < channels; ++c) scale[c] *= w[c];
    for (std::int64_t p = 0; p < g.pixels; ++p)
      for (std::size_t c = 0; c < channels; ++c) {
        const std::size_t i = static_cast<std::size_t>(p) * channels + c;
        out[i] = (in[i] - centre[c]) * scale[c] + shift[c];
      }
  }
}

void group_norm_backward(const group_geometry& g, std::int64_t batch, std::span<const float> x,
                         std::span<const float> mean, std::span<const float> inverse_deviation,
                         std::span<const float> weight, std::span<const float> dy, std::span<float> dweight,
                         std::span<float> dbias, std::span<float> dx) {
  check_groups(g, batch, x.size());
  const std::vector<float> ones(weight.empty() ? static_cast<std::size_t>(g.channels) : 0, 1.0F);
  const float* const w = weight.empty() ? ones.data() : weight.data();
  record_sums sums(g);
  group_channels at(g);
  group_parameter_sums parameters(g);
  for (std::int64_t n = 0; n < batch; ++n) {
    const std::int64_t record = n * g.pixels * g.channels;
    spread_groups(g, mean.data() + n * g.groups, at.mean);
    spread_groups(g, inverse_deviation.data() + n * g.groups, at.deviation);
    if (!dweight.empty()) parameters.add(g, x.data() + record, dy.data() + record, at);
    if (!dx.empty())
      write_group_gradient(g, x.data() + record, w, dy.data() + record, sums, at, dx.data() + record);
  }
  for (std::size_t c = 0; c < dweight.size(); ++c) {
    dweight[c] = static_cast<float>(parameters.weight[c]);
    dbias[c] = static_cast<float>(parameters.bias[c]);
  }
}

} // namespace dlrun::kernels::cpu
