#include "engine/layers/layers.hpp"
#include "kernels/cpu/max_pool.hpp"

#include <fmt/format.h>
#include <limits>

namespace dlrun::engine {
namespace {

using kernels::cpu::pool_geometry;

class max_pool2d_operation final : public operation {
public:
  explicit max_pool2d_operation(const pool_geometry& geometry)
      : geometry_(geometry) {}

  result<void> forward(const pass& now, std::span<const std::span<const float>> inputs,
                       std::span<float> output) override {
    winner_.resize(output.size());
    kernels::cpu::max_pool(geometry_, now.batch, inputs[0], output, winner_);
    return {};
  }

  void backward(const pass& now, std::span<const std::span<const float>>, std::span<const float>,
                std::span<const float> output_gradient,
                std::span<const std::span<float>> input_gradients) override {
    if (!input_gradients[0].empty())
      kernels::cpu::max_pool_backward(geometry_, now.batch, winner_, output_gradient, input_gradients[0]);
  }

private:
  pool_geometry geometry_;
  std::vector<std::int32_t> winner_;
};

class max_pool2d_layer final : public layer {
public:
  max_pool2d_layer(std::string name, const shape& input, const pool_geometry& g)
      : layer(std::move(name), {input}, {g.channels, g.out_height, g.out_width})
      , geometry_(g) {}

  std::unique_ptr<operation> make_operation(kernels::cpu::onednn&, bool) const override {
    return std::make_unique<max_pool2d_operation>(geometry_);
  }

  std::unique_ptr<operation> make_operation_after_relu() const override {
    auto geometry = geometry_;
    geometry.of_relu = true;
    return std::make_unique<max_pool2d_operation>(geometry);
  }

private:
  pool_geometry geometry_;
};

/// What is wrong with the arguments themselves, or "".
std::string pool_complaint(const pool_geometry& g) {
  if (g.kernel < 1) return fmt::format("kernel_size is {}, but must be at least 1", g.kernel);
  if (g.stride < 1) return fmt::format("stride is {}, but must be at least 1", g.stride);
  if (g.padding < 0 || g.padding > g.kernel / 2)
    return fmt::format("padding is {}, but must be 0 to half of kernel_size {}", g.padding, g.kernel);
  return {};
}

} // namespace

layer_result make_max_pool2d(const spec::MaxPool2d& spec, const std::string& name, const shape& input) {
  if (input.size() != 3) return image_error(name, "max_pool2d", input);
  pool_geometry g{.channels = input[0],
                  .height = input[1],
                  .width = input[2],
                  .kernel = spec.kernel_size(),
                  .stride = spec.has_stride() ? spec.stride() : spec.kernel_size(),
                  .padding = spec.padding()};
  if (const auto wrong = pool_complaint(g); !wrong.empty()) return layer_error(name, "max_pool2d", wrong);
  if (input[1] * input[2] > std::numeric_limits<std::int32_t>::max())
    return layer_error(name, "max_pool2d", fmt::format("an image of {} is too large", to_string(input)));
  g.out_height = windows(g.height, g.kernel, g.stride, g.padding);
  g.out_width = windows(g.width, g.kernel, g.stride, g.padding);
  if (g.out_height < 1 || g.out_width < 1)
    return layer_error(
        name, "max_pool2d",
        fmt::format("a window of [{0}, {0}] does not fit its input {1} with padding {2}; use a smaller "
                    "kernel_size or fewer pooling layers",
                    g.kernel, to_string(input), g.padding));
  return std::make_unique<max_pool2d_layer>(name, input, g);
}

} // namespace dlrun::engine
