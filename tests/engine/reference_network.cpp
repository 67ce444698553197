#include "tests/engine/reference_network.hpp"

#include "tests/engine/reference_layers.hpp"
#include "tests/engine/spec_builder.hpp"
#include <dlrun/random.hpp>

#include <cmath>
#include <limits>

namespace dlrun::engine::testing {
namespace {

using values = std::vector<double>;

std::size_t size_of(const shape& extents) { return static_cast<std::size_t>(element_count(extents).value()); }

values linear(const double* w, bool bias, std::size_t batch, std::size_t in, std::size_t out,
              const values& x) {
  values y(batch * out);
  for (std::size_t n = 0; n < batch; ++n)
    for (std::size_t o = 0; o < out; ++o) {
      double sum = bias ? w[(in * out + 15) / 16 * 16 + o] : 0;
      for (std::size_t i = 0; i < in; ++i) sum += x[n * in + i] * w[o * in + i];
      y[n * out + o] = sum;
    }
  return y;
}

/// Calls visit(input pixel) for each pixel of the window at (row, column) that is inside the image,
/// with the kernel's place.
void for_window(const shape& in, std::int64_t kernel, std::int64_t top, std::int64_t left,
                const std::function<void(std::size_t pixel, std::size_t place)>& visit) {
  for (std::int64_t i = 0; i < kernel; ++i)
    for (std::int64_t j = 0; j < kernel; ++j)
      if (top + i >= 0 && top + i < in[1] && left + j >= 0 && left + j < in[2])
        visit(static_cast<std::size_t>((top + i) * in[2] + left + j),
              static_cast<std::size_t>(i * kernel + j));
}

/// Calls visit(record, out channel, row, column, output index) for each output element.
void for_output(
    std::size_t batch, const shape& out,
    const std::function<void(std::size_t, std::size_t, std::int64_t, std::int64_t, std::size_t)>& visit) {
  std::size_t index = 0;
  for (std::size_t n = 0; n < batch; ++n)
    for (std::int64_t o = 0; o < out[0]; ++o)
      for (std::int64_t row = 0; row < out[1]; ++row)
        for (std::int64_t column = 0; column < out[2]; ++column)
          visit(n, static_cast<std::size_t>(o), row, column, index++);
}

values convolve(const spec::Conv2d& c, const double* w, std::size_t batch, const shape& in, const shape& out,
                const values& x) {
  values y(batch * size_of(out));
  const auto channels = static_cast<std::size_t>(in[0]), pixels = static_cast<std::size_t>(in[1] * in[2]);
  const auto places = static_cast<std::size_t>(c.kernel_size() * c.kernel_size());
  const auto weight_size = static_cast<std::size_t>(out[0]) * channels * places;
  const bool bias = !c.has_bias() || c.bias();
  const std::int64_t stride = c.has_stride() ? c.stride() : 1;
  for_output(batch, out,
             [&](std::size_t n, std::size_t o, std::int64_t row, std::int64_t column, std::size_t index) {
               double sum = bias ? w[(weight_size + 15) / 16 * 16 + o] : 0;
               for_window(in, c.kernel_size(), row * stride - c.padding(), column * stride - c.padding(),
                          [&](std::size_t pixel, std::size_t place) {
                            for (std::size_t i = 0; i < channels; ++i)
                              sum += x[(n * channels + i) * pixels + pixel] *
                                     w[(o * channels + i) * places + place];
                          });
               y[index] = sum;
             });
  return y;
}

values pool(const spec::MaxPool2d& p, std::size_t batch, const shape& in, const shape& out, const values& x) {
  values y(batch * size_of(out), -std::numeric_limits<double>::infinity());
  const auto channels = static_cast<std::size_t>(in[0]), pixels = static_cast<std::size_t>(in[1] * in[2]);
  const std::int64_t stride = p.has_stride() ? p.stride() : p.kernel_size();
  for_output(batch, out,
             [&](std::size_t n, std::size_t o, std::int64_t row, std::int64_t column, std::size_t index) {
               for_window(in, p.kernel_size(), row * stride - p.padding(), column * stride - p.padding(),
                          [&](std::size_t pixel, std::size_t) {
                            y[index] = std::max(y[index], x[(n * channels + o) * pixels + pixel]);
                          });
             });
  return y;
}

values batch_norm(const spec::BatchNorm& b, const double* w, std::size_t batch, const shape& in,
                  const values& x) {
  const auto channels = static_cast<std::size_t>(in[0]), pixels = size_of(in) / channels;
  const auto count = static_cast<double>(batch * pixels);
  const double eps = b.has_eps() ? b.eps() : 1e-5;
  const bool affine = !b.has_affine() || b.affine();
  values y(x.size());
  for (std::size_t c = 0; c < channels; ++c) {
    const auto each = [&](const auto& visit) {
      for (std::size_t n = 0; n < batch; ++n)
        for (std::size_t p = 0; p < pixels; ++p) visit((n * channels + c) * pixels + p);
    };
    double mean = 0, square = 0;
    each([&](std::size_t i) { mean += x[i] / count; });
    each([&](std::size_t i) { square += (x[i] - mean) * (x[i] - mean) / count; });
    const double weight = affine ? w[c] : 1, bias = affine ? w[(channels + 15) / 16 * 16 + c] : 0;
    each([&](std::size_t i) { y[i] = (x[i] - mean) / std::sqrt(square + eps) * weight + bias; });
  }
  return y;
}

/// For vectors only: there channels first and channels last are one order.
values dropout(double p, std::size_t position, const slot_key& key, values x) {
  const random_stream stream(key.seed, random_purpose::dropout, key.step, key.slot,
                             static_cast<std::uint32_t>(position));
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] *= random_stream::uniform(stream.words(i / 4)[i % 4]) < p ? 0 : 1 / (1 - p);
  return x;
}

} // namespace

reference_network::reference_network(const std::string& specification)
    : spec_(parse<spec::ModelSpec>(specification))
    , model_(model::build(spec_).value()) {}

reference_network::tensor reference_network::apply(std::size_t position, const double* w,
                                                   const std::vector<const tensor*>& inputs,
                                                   const slot_key& key) const {
  const tensor& x = *inputs.front();
  const auto& layer = spec_.layers(static_cast<int>(position));
  const auto& out = model_->nodes()[position].layer->output_shape();
  tensor y{x.batch, out, x.values};
  switch (layer.kind_case()) {
  case spec::LayerSpec::kLinear:
    y.values = linear(w, !layer.linear().has_bias() || layer.linear().bias(), x.batch, size_of(x.extents),
                      size_of(out), x.values);
    break;
  case spec::LayerSpec::kConv2D:
    y.values = convolve(layer.conv2d(), w, x.batch, x.extents, out, x.values);
    break;
  case spec::LayerSpec::kMaxPool2D:
    y.values = pool(layer.max_pool2d(), x.batch, x.extents, out, x.values);
    break;
  case spec::LayerSpec::kRelu:
    for (auto& value : y.values) value = std::max(value, 0.0);
    break;
  case spec::LayerSpec::kDropout: y.values = dropout(layer.dropout().p(), position, key, x.values); break;
  case spec::LayerSpec::kBatchNorm:
    y.values = batch_norm(layer.batch_norm(), w, x.batch, x.extents, x.values);
    break;
  default: {
    std::vector<reference_input> read;
    for (const auto* const input : inputs) read.push_back({input->extents, &input->values});
    y.values = reference_forward(layer, w, x.batch, read, out);
  }
  }
  return y;
}

double reference_network::loss(const std::vector<double>& parameters, const std::vector<double>& records,
                               const std::vector<std::int32_t>& labels, const slot_key& key) const {
  const tensor input{labels.size(), model_->input_shape(), records};
  std::vector<tensor> outputs;
  for (std::size_t position = 0; position < model_->nodes().size(); ++position) {
    const auto& node = model_->nodes()[position];
    std::vector<const tensor*> read;
    for (const auto from : node.inputs)
      read.push_back(from == model_node::model_input ? &input : &outputs[static_cast<std::size_t>(from)]);
    const auto offset = model_->layout().tensors()[node.first_tensor].offset;
    outputs.push_back(apply(position, parameters.data() + offset, read, key));
  }
  const tensor& x = outputs.back();
  const std::size_t classes = size_of(x.extents);
  double sum = 0;
  for (std::size_t n = 0; n < labels.size(); ++n) {
    double total = 0;
    for (std::size_t c = 0; c < classes; ++c) total += std::exp(x.values[n * classes + c]);
    sum += std::log(total) - x.values[n * classes + static_cast<std::size_t>(labels[n])];
  }
  return sum;
}

} // namespace dlrun::engine::testing
