#include "engine/layers/convolution_operation.hpp"
#include "engine/layers/layers.hpp"

#include <fmt/format.h>

namespace dlrun::engine {

using kernels::cpu::convolution_geometry;

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
  return make_convolution_layer(name, input, g);
}

} // namespace dlrun::engine
