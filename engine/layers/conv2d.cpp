#include "engine/layers/convolution_operation.hpp"
#include "engine/layers/layers.hpp"

#include <fmt/format.h>

namespace dlrun::engine {
namespace {

using kernels::cpu::convolution_geometry;

class conv2d_layer final : public layer {
public:
  conv2d_layer(std::string name, const shape& input, const convolution_geometry& g)
      : layer(std::move(name), {input}, {g.out_channels, g.out_height, g.out_width})
      , geometry_(g) {
    for (auto& tensor : kernel_tensors(g, g.bias ? g.out_channels : 0)) add_tensor(std::move(tensor));
  }

  layer_description describe() const override { return convolution_description{geometry_}; }

  std::unique_ptr<operation> make_operation(kernels::cpu::onednn& context,
                                            bool input_gradient) const override {
    return make_convolution_operation(context, geometry_, input_gradient);
  }

  const convolution_geometry* convolution() const override { return &geometry_; }

private:
  convolution_geometry geometry_;
};

} // namespace

layer_result make_conv2d(const spec::Conv2d& spec, const std::string& name, const shape& input) {
  if (input.size() != 3) return image_error(name, "conv2d", input);
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
