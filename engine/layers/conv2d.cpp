#include "engine/layers/layers.hpp"
#include "kernels/cpu/convolution.hpp"

#include <fmt/format.h>

namespace dlrun::engine {
namespace {

using kernels::cpu::convolution_geometry;

class conv2d_operation final : public operation {
public:
  conv2d_operation(kernels::cpu::onednn& context, const convolution_geometry& geometry, bool input_gradient)
      : bias_(geometry.bias)
      , convolution_(context, geometry, input_gradient) {}

  result<void> forward(const pass& now, std::span<const std::span<const float>> inputs,
                       std::span<float> output) override {
    convolution_.forward(now.batch, inputs[0].data(), now.tensors[0].data(),
                         bias_ ? now.tensors[1].data() : nullptr, output.data());
    return {};
  }

  void backward(const pass& now, std::span<const std::span<const float>> inputs, std::span<const float>,
                std::span<const float> output_gradient,
                std::span<const std::span<float>> input_gradients) override {
    convolution_.backward(now.batch, inputs[0].data(), now.tensors[0].data(), output_gradient.data(),
                          now.gradients[0].data(), bias_ ? now.gradients[1].data() : nullptr,
                          input_gradients[0].empty() ? nullptr : input_gradients[0].data());
  }

private:
  bool bias_;
  kernels::cpu::convolution convolution_;
};

class conv2d_layer final : public layer {
public:
  conv2d_layer(std::string name, const shape& input, const convolution_geometry& g)
      : layer(std::move(name), {input}, {g.out_channels, g.out_height, g.out_width})
      , geometry_(g) {
    const float bound = initial_bound(g.in_channels * g.kernel * g.kernel);
    add_tensor({"weight",
                {g.out_channels, g.in_channels, g.kernel, g.kernel},
                block_kind::parameter,
                -bound,
                bound});
    if (g.bias) add_tensor({"bias", {g.out_channels}, block_kind::parameter, -bound, bound});
  }

  std::unique_ptr<operation> make_operation(kernels::cpu::onednn& context,
                                            bool input_gradient) const override {
    return std::make_unique<conv2d_operation>(context, geometry_, input_gradient);
  }

private:
  convolution_geometry geometry_;
};

/// What is wrong with the arguments themselves, or "".
std::string convolution_complaint(const convolution_geometry& g) {
  if (g.out_channels < 1) return fmt::format("out_channels is {}, but must be at least 1", g.out_channels);
  if (g.kernel < 1) return fmt::format("kernel_size is {}, but must be at least 1", g.kernel);
  if (g.stride < 1) return fmt::format("stride is {}, but must be at least 1", g.stride);
  if (g.padding < 0) return fmt::format("padding is {}, but must be 0 or more", g.padding);
  return {};
}

} // namespace

layer_result make_conv2d(const spec::Conv2d& spec, const std::string& name, const shape& input) {
  if (input.size() != 3)
    return layer_error(
        name, "conv2d",
        fmt::format("takes records of shape [channels, height, width], but gets {}; put it before flatten "
                    "and linear layers",
                    to_string(input)));
  convolution_geometry g{.in_channels = input[0],
                         .height = input[1],
                         .width = input[2],
                         .out_channels = spec.out_channels(),
                         .kernel = spec.kernel_size(),
                         .stride = spec.has_stride() ? spec.stride() : 1,
                         .padding = spec.padding(),
                         .bias = !spec.has_bias() || spec.bias()};
  if (const auto wrong = convolution_complaint(g); !wrong.empty()) return layer_error(name, "conv2d", wrong);
  g.out_height = windows(g.height, g.kernel, g.stride, g.padding);
  g.out_width = windows(g.width, g.kernel, g.stride, g.padding);
  if (g.out_height < 1 || g.out_width < 1)
    return layer_error(
        name, "conv2d",
        fmt::format("a kernel of [{0}, {0}] does not fit its input {1} with padding {2}; use a smaller "
                    "kernel_size or more padding",
                    g.kernel, to_string(input), g.padding));
  if (!element_count({g.out_channels, g.out_height, g.out_width}) ||
      !element_count({g.out_channels, g.in_channels, g.kernel, g.kernel}))
    return layer_error(
        name, "conv2d",
        fmt::format("{} output channels on {} are too large", g.out_channels, to_string(input)));
  return std::make_unique<conv2d_layer>(name, input, g);
}

} // namespace dlrun::engine
