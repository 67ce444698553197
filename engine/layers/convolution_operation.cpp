#include "engine/layers/convolution_operation.hpp"

#include "engine/layers/layers.hpp"

#include <fmt/format.h>

namespace dlrun::engine {
namespace {

using kernels::cpu::convolution_geometry;

class convolution_operation final : public operation {
public:
  convolution_operation(kernels::cpu::onednn& context, const convolution_geometry& geometry,
                        bool input_gradient)
      : bias_(geometry.bias)
      , convolution_(context, geometry, input_gradient) {}

  result<void> forward(const pass& now, std::span<const std::span<const float>> inputs,
                       std::span<float> output) override {
    convolution_.set_weights(now.tensors[0].data());
    convolution_.forward(now.batch, inputs[0].data(), bias_ ? now.tensors[1].data() : nullptr, output.data());
    return {};
  }

  void backward(const pass& now, std::span<const std::span<const float>> inputs, std::span<const float>,
                std::span<const float> output_gradient,
                std::span<const std::span<float>> input_gradients) override {
    convolution_.set_weights(now.tensors[0].data());
    convolution_.backward(now.batch, inputs[0].data(), output_gradient.data(), now.gradients[0].data(),
                          bias_ ? now.gradients[1].data() : nullptr,
                          input_gradients[0].empty() ? nullptr : input_gradients[0].data());
  }

  memory_use memory() const override { return {.output_on_way_back = false}; }

private:
  bool bias_;
  kernels::cpu::convolution convolution_;
};

shape output_of(const convolution_geometry& g) {
  return g.flat ? shape{g.out_channels, g.out_width} : shape{g.out_channels, g.out_height, g.out_width};
}

class convolution_layer final : public layer {
public:
  convolution_layer(std::string name, const shape& input, const convolution_geometry& g)
      : layer(std::move(name), {input}, output_of(g))
      , geometry_(g) {
    for (auto& tensor : kernel_tensors(g, g.bias ? g.out_channels : 0)) add_tensor(std::move(tensor));
  }

  layer_description describe() const override { return convolution_description{geometry_}; }

  std::unique_ptr<operation> make_operation(kernels::cpu::onednn& context,
                                            bool input_gradient) const override {
    return std::make_unique<convolution_operation>(context, geometry_, input_gradient);
  }

  const convolution_geometry* convolution() const override { return geometry_.flat ? nullptr : &geometry_; }

private:
  convolution_geometry geometry_;
};

} // namespace

std::unique_ptr<layer> make_convolution_layer(std::string name, const shape& input,
                                              const convolution_geometry& geometry) {
  return std::make_unique<convolution_layer>(std::move(name), input, geometry);
}

std::vector<layer_tensor> kernel_tensors(const convolution_geometry& g, std::int64_t biases) {
  shape weight{g.out_channels, g.in_channels, g.kernel};
  if (!g.flat) weight.push_back(g.kernel);
  const float bound = initial_bound(g.in_channels * g.kernel_height() * g.kernel);
  std::vector<layer_tensor> tensors{{"weight", std::move(weight), tensor_kind::parameter, -bound, bound}};
  if (biases != 0) tensors.push_back({"bias", {biases}, tensor_kind::parameter, -bound, bound});
  return tensors;
}

std::string convolution_complaint(const convolution_geometry& g) {
  if (g.out_channels < 1) return fmt::format("out_channels is {}, but must be at least 1", g.out_channels);
  if (g.kernel < 1) return fmt::format("kernel_size is {}, but must be at least 1", g.kernel);
  if (g.stride < 1) return fmt::format("stride is {}, but must be at least 1", g.stride);
  if (g.padding < 0) return fmt::format("padding is {}, but must be 0 or more", g.padding);
  return {};
}

} // namespace dlrun::engine
