#include "tests/engine/reference_layers.hpp"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numbers>

namespace dlrun::engine::testing {
namespace {

using values = std::vector<double>;
using inputs_of_layer = std::vector<reference_input>;

std::size_t count_of(const shape& extents) {
  return static_cast<std::size_t>(element_count(extents).value());
}

std::size_t next_tensor(std::size_t size) { return (size + 15) / 16 * 16; }

struct image {
  std::size_t channels, height, width;
  explicit image(const shape& s)
      : channels(static_cast<std::size_t>(s[0]))
      , height(s.size() == 3 ? static_cast<std::size_t>(s[1]) : 1)
      , width(static_cast<std::size_t>(s.back())) {}
  std::size_t at(std::size_t n, std::size_t c, std::size_t row, std::size_t column) const {
    return ((n * channels + c) * height + row) * width + column;
  }
};

double activated(const spec::LayerSpec& layer, double x) {
  const double sigmoid = 1 / (1 + std::exp(-x));
  switch (layer.kind_case()) {
  case spec::LayerSpec::kSilu: return x * sigmoid;
  case spec::LayerSpec::kSigmoid: return sigmoid;
  case spec::LayerSpec::kTanh: return std::tanh(x);
  case spec::LayerSpec::kLeakyRelu:
    return x > 0 ? x
                 : x * (layer.leaky_relu().has_negative_slope() ? layer.leaky_relu().negative_slope() : 0.01);
  default:
    if (layer.gelu().approximate() == "tanh")
      return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    return x / 2 * std::erfc(-x / std::numbers::sqrt2);
  }
}

/// Mean over a window; what lies outside the image counts in the divisor where `outside` says so.
values avg_pool(const spec::AvgPool2d& p, std::size_t batch, const shape& in, const shape& out,
                const values& x) {
  const image from(in), to(out);
  values y(batch * count_of(out));
  const std::int64_t stride = p.has_stride() ? p.stride() : p.kernel_size();
  const bool outside = !p.has_count_include_pad() || p.count_include_pad();
  for (std::size_t n = 0; n < batch; ++n)
    for (std::size_t c = 0; c < to.channels; ++c)
      for (std::size_t row = 0; row < to.height; ++row)
        for (std::size_t column = 0; column < to.width; ++column) {
          double sum = 0, count = 0;
          for (std::int64_t i = 0; i < p.kernel_size(); ++i)
            for (std::int64_t j = 0; j < p.kernel_size(); ++j) {
              const std::int64_t r = static_cast<std::int64_t>(row) * stride - p.padding() + i;
              const std::int64_t s = static_cast<std::int64_t>(column) * stride - p.padding() + j;
              const bool inside = r >= 0 && r < in[1] && s >= 0 && s < in[2];
              const bool padded = r < in[1] + p.padding() && s < in[2] + p.padding();
              if (inside) sum += x[from.at(n, c, static_cast<std::size_t>(r), static_cast<std::size_t>(s))];
              count += inside || (outside && padded) ? 1 : 0;
            }
          y[to.at(n, c, row, column)] = sum / count;
        }
  return y;
}

values adaptive_pool(std::size_t batch, const shape& in, const shape& out, const values& x) {
  const image from(in), to(out);
  values y(batch * count_of(out)), counts(y.size());
  for (std::size_t n = 0; n < batch; ++n)
    for (std::size_t c = 0; c < to.channels; ++c)
      for (std::size_t i = 0; i < to.height; ++i)
        for (std::size_t j = 0; j < to.width; ++j) {
          double sum = 0, count = 0;
          for (std::size_t r = 0; r < from.height; ++r)
            for (std::size_t s = 0; s < from.width; ++s) {
              // Pixel r belongs to window i when [r, r + 1) and [i, i + 1) * height / count
              // overlap.
              const bool row = r * to.height < (i + 1) * from.height && (r + 1) * to.height > i * from.height;
              const bool column = s * to.width < (j + 1) * from.width && (s + 1) * to.width > j * from.width;
              if (!row || !column) continue;
              sum += x[from.at(n, c, r, s)];
              count += 1;
            }
          y[to.at(n, c, i, j)] = sum / count;
        }
  return y;
}

values conv1d(const spec::Conv1d& l, const double* w, std::size_t batch, const shape& in, const shape& out,
              const values& x) {
  const image from(in), to(out);
  values y(batch * count_of(out));
  const auto kernel = static_cast<std::size_t>(l.kernel_size());
  const bool bias = !l.has_bias() || l.bias();
  for (std::size_t n = 0; n < batch; ++n)
    for (std::size_t o = 0; o < to.channels; ++o)
      for (std::size_t place = 0; place < to.width; ++place) {
        double sum = bias ? w[next_tensor(to.channels * from.channels * kernel) + o] : 0;
        for (std::size_t i = 0; i < from.channels; ++i)
          for (std::size_t k = 0; k < kernel; ++k) {
            const std::int64_t at = static_cast<std::int64_t>(place) * (l.has_stride() ? l.stride() : 1) -
                                    l.padding() + static_cast<std::int64_t>(k);
            if (at >= 0 && at < in[1])
              sum +=
                  x[from.at(n, i, 0, static_cast<std::size_t>(at))] * w[(o * from.channels + i) * kernel + k];
          }
        y[to.at(n, o, 0, place)] = sum;
      }
  return y;
}

/// Each input pixel adds its kernel to the output.
values conv_transpose(const spec::ConvTranspose2d& l, const double* w, std::size_t batch, const shape& in,
                      const shape& out, const values& x) {
  const image from(in), to(out);
  const auto kernel = static_cast<std::size_t>(l.kernel_size());
  const bool bias = !l.has_bias() || l.bias();
  values y(batch * count_of(out));
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = bias ? w[next_tensor(from.channels * to.channels * kernel * kernel) +
                    i / (to.height * to.width) % to.channels]
                : 0;
  const auto place = [&](std::size_t at, std::size_t k) {
    return static_cast<std::int64_t>(at) * (l.has_stride() ? l.stride() : 1) - l.padding() +
           static_cast<std::int64_t>(k);
  };
  for (std::size_t n = 0; n < batch; ++n)
    for (std::size_t c = 0; c < from.channels; ++c)
      for (std::size_t row = 0; row < from.height; ++row)
        for (std::size_t column = 0; column < from.width; ++column)
          for (std::size_t o = 0; o < to.channels; ++o)
            for (std::size_t tap = 0; tap < kernel * kernel; ++tap) {
              const std::int64_t r = place(row, tap / kernel), s = place(column, tap % kernel);
              if (r < 0 || s < 0 || r >= out[1] || s >= out[2]) continue;
              y[to.at(n, o, static_cast<std::size_t>(r), static_cast<std::size_t>(s))] +=
                  x[from.at(n, c, row, column)] * w[(c * to.channels + o) * kernel * kernel + tap];
            }
  return y;
}

/// Normalises each run of `size` neighbours; value i of the run has the weight of
/// `weight_of(index)`.
template <class WeightOf>
values normalise_runs(std::size_t size, double eps, const values& x, const double* weight, const double* bias,
                      WeightOf weight_of) {
  values y(x.size());
  for (std::size_t begin = 0; begin < x.size(); begin += size) {
    double mean = 0, square = 0;
    for (std::size_t i = begin; i < begin + size; ++i) mean += x[i] / static_cast<double>(size);
    for (std::size_t i = begin; i < begin + size; ++i)
      square += (x[i] - mean) * (x[i] - mean) / static_cast<double>(size);
    for (std::size_t i = begin; i < begin + size; ++i) {
      const double z = (x[i] - mean) / std::sqrt(square + eps);
      y[i] = weight == nullptr ? z : z * weight[weight_of(i)] + bias[weight_of(i)];
    }
  }
  return y;
}

values layer_norm(const spec::LayerNorm& l, const double* w, const shape& in, const values& x) {
  const shape normalized =
      l.normalized_shape_size() == 0 ? in : shape(l.normalized_shape().begin(), l.normalized_shape().end());
  const std::size_t size = count_of(normalized);
  const bool affine = !l.has_elementwise_affine() || l.elementwise_affine();
  return normalise_runs(size, l.has_eps() ? l.eps() : 1e-5, x, affine ? w : nullptr, w + next_tensor(size),
                        [&](std::size_t i) { return i % size; });
}

values group_norm(const spec::GroupNorm& l, const double* w, const shape& in, const values& x) {
  const std::size_t record = count_of(in), channels = static_cast<std::size_t>(in[0]);
  const bool affine = !l.has_affine() || l.affine();
  return normalise_runs(record / static_cast<std::size_t>(l.num_groups()), l.has_eps() ? l.eps() : 1e-5, x,
                        affine ? w : nullptr, w + next_tensor(channels),
                        [&](std::size_t i) { return i % record / (record / channels); });
}

values softmax(std::size_t batch, const shape& in, const values& x) {
  const std::size_t channels = static_cast<std::size_t>(in[0]), pixels = count_of(in) / channels;
  values y(x.size());
  for (std::size_t n = 0; n < batch; ++n)
    for (std::size_t p = 0; p < pixels; ++p) {
      double sum = 0;
      for (std::size_t c = 0; c < channels; ++c) sum += std::exp(x[(n * channels + c) * pixels + p]);
      for (std::size_t c = 0; c < channels; ++c)
        y[(n * channels + c) * pixels + p] = std::exp(x[(n * channels + c) * pixels + p]) / sum;
    }
  return y;
}

/// With channels first, a record's channels are one run of floats.
values concat(std::size_t batch, const inputs_of_layer& inputs) {
  values y;
  for (std::size_t n = 0; n < batch; ++n)
    for (const auto& input : inputs) {
      const auto size = static_cast<std::ptrdiff_t>(count_of(input.extents));
      const auto begin = input.values->begin() + static_cast<std::ptrdiff_t>(n) * size;
      y.insert(y.end(), begin, begin + size);
    }
  return y;
}

values select(const spec::Select& l, std::size_t batch, const shape& in, const shape& out, const values& x) {
  const auto size = static_cast<std::ptrdiff_t>(count_of(in)),
             count = static_cast<std::ptrdiff_t>(count_of(out));
  const std::ptrdiff_t first = size / in[0] * l.first();
  values y;
  for (std::size_t n = 0; n < batch; ++n) {
    const auto begin = x.begin() + static_cast<std::ptrdiff_t>(n) * size + first;
    y.insert(y.end(), begin, begin + count);
  }
  return y;
}

values embed(const spec::Embedding& l, const double* w, const values& x) {
  values y;
  for (const double index : x) {
    const double* const row = w + static_cast<std::int64_t>(index) * l.embedding_dim();
    y.insert(y.end(), row, row + l.embedding_dim());
  }
  return y;
}

values combine(const inputs_of_layer& inputs, bool product) {
  values y = *inputs[0].values;
  for (std::size_t k = 1; k < inputs.size(); ++k)
    for (std::size_t i = 0; i < y.size(); ++i)
      y[i] = product ? y[i] * (*inputs[k].values)[i] : y[i] + (*inputs[k].values)[i];
  return y;
}

} // namespace

values reference_forward(const spec::LayerSpec& layer, const double* w, std::size_t batch,
                         const inputs_of_layer& inputs, const shape& out) {
  const auto& in = inputs[0].extents;
  const auto& x = *inputs[0].values;
  switch (layer.kind_case()) {
  case spec::LayerSpec::kAvgPool2D: return avg_pool(layer.avg_pool2d(), batch, in, out, x);
  case spec::LayerSpec::kAdaptiveAvgPool2D: return adaptive_pool(batch, in, out, x);
  case spec::LayerSpec::kConv1D: return conv1d(layer.conv1d(), w, batch, in, out, x);
  case spec::LayerSpec::kConvTranspose2D:
    return conv_transpose(layer.conv_transpose2d(), w, batch, in, out, x);
  case spec::LayerSpec::kLayerNorm: return layer_norm(layer.layer_norm(), w, in, x);
  case spec::LayerSpec::kGroupNorm: return group_norm(layer.group_norm(), w, in, x);
  case spec::LayerSpec::kAdd: return combine(inputs, false);
  case spec::LayerSpec::kMultiply: return combine(inputs, true);
  case spec::LayerSpec::kConcat: return concat(batch, inputs);
  case spec::LayerSpec::kSoftmax: return softmax(batch, in, x);
  case spec::LayerSpec::kEmbedding: return embed(layer.embedding(), w, x);
  case spec::LayerSpec::kSelect: return select(layer.select(), batch, in, out, x);
  case spec::LayerSpec::kFlatten:
  case spec::LayerSpec::kReshape: return x; // channels first already
  case spec::LayerSpec::kGelu:
  case spec::LayerSpec::kSilu:
  case spec::LayerSpec::kSigmoid:
  case spec::LayerSpec::kTanh:
  case spec::LayerSpec::kLeakyRelu: break;
  default: ADD_FAILURE() << "no reference for " << layer.ShortDebugString();
  }
  values y(x.size());
  std::ranges::transform(x, y.begin(), [&](double value) { return activated(layer, value); });
  return y;
}

} // namespace dlrun::engine::testing
