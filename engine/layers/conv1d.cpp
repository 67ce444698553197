#include "engine/layers/convolution_operation.hpp"
#include "engine/layers/layers.hpp"

#include <fmt/format.h>

namespace dlrun::engine {

using kernels::cpu::convolution_geometry;

layer_result make_conv1d(const spec::Conv1d& spec, const std::string& name, const shape& input) {
  if (input.size() != 2)
    return layer_error(name, "conv1d",
                       fmt::format("takes records of shape [channels, length], but gets {}; put a reshape "
                                   "layer before it, e.g. reshape: {{shape: [1, -1]}}",
                                   to_string(input)));
  convolution_geometry g{.in_channels = input[0],
                         .height = 1,
                         .width = input[1],
                         .out_channels = spec.out_channels(),
                         .out_height = 1,
                         .kernel = spec.kernel_size(),
                         .stride = spec.has_stride() ? spec.stride() : 1,
                         .padding = spec.padding(),
                         .bias = !spec.has_bias() || spec.bias(),
                         .flat = true};
  if (const auto wrong = convolution_complaint(g); !wrong.empty()) return layer_error(name, "conv1d", wrong);
  g.out_width = windows(g.width, g.kernel, g.stride, g.padding);
  if (g.out_width < 1)
    return layer_error(name, "conv1d",
                       fmt::format("a kernel of [{}] does not fit its input {} with padding {}; use a "
                                   "smaller kernel_size or more padding",
                                   g.kernel, to_string(input), g.padding));
  if (!element_count({g.out_channels, g.out_width}) ||
      !element_count({g.out_channels, g.in_channels, g.kernel}))
    return layer_error(
        name, "conv1d",
        fmt::format("{} output channels on {} are too large", g.out_channels, to_string(input)));
  return make_convolution_layer(name, input, g);
}

} // namespace dlrun::engine
