#include "engine/layers/convolution_operation.hpp"
#include "engine/layers/layers.hpp"
#include "kernels/cpu/convolution.hpp"
#include "kernels/cpu/strided.hpp"

#include <fmt/format.h>

namespace dlrun::engine {
namespace {

using kernels::cpu::convolution_geometry;

/// A convolution read backwards: what goes in here comes out there, so that each pass here is
/// another of its passes, on the same weights.
class conv_transpose2d_operation final : public operation {
public:
  conv_transpose2d_operation(kernels::cpu::onednn& context, const convolution_geometry& mirrored, bool bias)
      : bias_(bias)
      , convolution_(context, mirrored, true) {}

  result<void> forward(const pass& now, std::span<const std::span<const float>> inputs,
                       std::span<float> output) override {
    convolution_.set_weights(now.tensors[0].data());
    convolution_.backward_data(now.batch, inputs[0].data(), output.data());
    if (bias_) kernels::cpu::add_row(now.tensors[1], output);
    return {};
  }

  void backward(const pass& now, std::span<const std::span<const float>> inputs, std::span<const float>,
                std::span<const float> output_gradient,
                std::span<const std::span<float>> input_gradients) override {
    convolution_.backward_weights(now.batch, output_gradient.data(), inputs[0].data(),
                                  now.gradients[0].data(), nullptr);
    if (bias_) kernels::cpu::sum_columns(output_gradient, now.gradients[1]);
    if (input_gradients[0].empty()) return;
    convolution_.set_weights(now.tensors[0].data());
    convolution_.forward(now.batch, output_gradient.data(), nullptr, input_gradients[0].data());
  }

  memory_use memory() const override { return {.output_on_way_back = false}; }

private:
  bool bias_;
  kernels::cpu::convolution convolution_;
};

class conv_transpose2d_layer final : public layer {
public:
  conv_transpose2d_layer(std::string name, const shape& input, const convolution_geometry& mirrored,
                         bool bias)
      : layer(std::move(name), {input}, {mirrored.in_channels, mirrored.height, mirrored.width})
      , mirrored_(mirrored)
      , bias_(bias) {
    // PyTorch takes the fan of the second axis here too, which is that of the outputs.
    for (auto& tensor : kernel_tensors(mirrored, bias ? mirrored.in_channels : 0))
      add_tensor(std::move(tensor));
  }

  layer_description describe() const override { return transposed_convolution_description{mirrored_, bias_}; }

  std::unique_ptr<operation> make_operation(kernels::cpu::onednn& context, bool) const override {
    return std::make_unique<conv_transpose2d_operation>(context, mirrored_, bias_);
  }

private:
  convolution_geometry mirrored_;
  bool bias_;
};

std::string transpose_complaint(const spec::ConvTranspose2d& spec, std::int64_t stride) {
  if (spec.out_channels() < 1)
    return fmt::format("out_channels is {}, but must be at least 1", spec.out_channels());
  if (spec.kernel_size() < 1)
    return fmt::format("kernel_size is {}, but must be at least 1", spec.kernel_size());
  if (stride < 1) return fmt::format("stride is {}, but must be at least 1", stride);
  if (spec.padding() < 0) return fmt::format("padding is {}, but must be 0 or more", spec.padding());
  if (spec.output_padding() < 0 || spec.output_padding() >= stride)
    return fmt::format("output_padding is {}, but must be 0 to below stride {}", spec.output_padding(),
                       stride);
  return {};
}

} // namespace

layer_result make_conv_transpose2d(const spec::ConvTranspose2d& spec, const std::string& name,
                                   const shape& input) {
  constexpr const char* kind = "conv_transpose2d";
  if (input.size() != 3) return image_error(name, kind, input);
  const std::int64_t stride = spec.has_stride() ? spec.stride() : 1;
  if (const auto wrong = transpose_complaint(spec, stride); !wrong.empty())
    return layer_error(name, kind, wrong);
  const auto grown = [&](std::int64_t extent) {
    return (extent - 1) * stride - 2 * spec.padding() + spec.kernel_size() + spec.output_padding();
  };
  const convolution_geometry mirrored{.in_channels = spec.out_channels(),
                                      .height = grown(input[1]),
                                      .width = grown(input[2]),
                                      .out_channels = input[0],
                                      .out_height = input[1],
                                      .out_width = input[2],
                                      .kernel = spec.kernel_size(),
                                      .stride = stride,
                                      .padding = spec.padding(),
                                      .bias = false};
  if (mirrored.height < 1 || mirrored.width < 1)
    return layer_error(name, kind,
                       fmt::format("its input {} grows to {} by {} pixels with padding {}; use less padding "
                                   "or a larger kernel_size",
                                   to_string(input), mirrored.height, mirrored.width, spec.padding()));
  if (!element_count({mirrored.in_channels, mirrored.height, mirrored.width}) ||
      !element_count({input[0], mirrored.in_channels, mirrored.kernel, mirrored.kernel}))
    return layer_error(
        name, kind,
        fmt::format("{} output channels on {} are too large", spec.out_channels(), to_string(input)));
  return std::make_unique<conv_transpose2d_layer>(name, input, mirrored, !spec.has_bias() || spec.bias());
}

} // namespace dlrun::engine
