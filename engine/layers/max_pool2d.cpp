#include "engine/layers/layers.hpp"
#include "kernels/cpu/convolution_pool.hpp"

#include <fmt/format.h>
#include <limits>

namespace dlrun::engine {
namespace {

using kernels::cpu::convolution_geometry;
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

  memory_use memory() const override { return {.inputs_on_way_back = false, .output_on_way_back = false}; }

private:
  pool_geometry geometry_;
  std::vector<std::int32_t> winner_;
};

class conv2d_max_pool2d_operation final : public operation {
public:
  conv2d_max_pool2d_operation(kernels::cpu::onednn& context, const convolution_geometry& convolution,
                              const pool_geometry& pool, bool input_gradient)
      : bias_(convolution.bias)
      , both_(context, convolution, pool, input_gradient) {}

  result<void> forward(const pass& now, std::span<const std::span<const float>> inputs,
                       std::span<float> output) override {
    both_.forward(now.batch, inputs[0].data(), now.tensors[0].data(), bias_ ? now.tensors[1].data() : nullptr,
                  output);
    return {};
  }

  void backward(const pass& now, std::span<const std::span<const float>> inputs, std::span<const float>,
                std::span<const float> output_gradient,
                std::span<const std::span<float>> input_gradients) override {
    both_.backward(now.batch, inputs[0].data(), now.tensors[0].data(), output_gradient,
                   now.gradients[0].data(), bias_ ? now.gradients[1].data() : nullptr,
                   input_gradients[0].empty() ? nullptr : input_gradients[0].data());
  }

  memory_use memory() const override { return {.output_on_way_back = false}; }

private:
  bool bias_;
  kernels::cpu::convolution_pool both_;
};

class max_pool2d_layer final : public layer {
public:
  max_pool2d_layer(std::string name, const shape& input, const pool_geometry& g)
      : layer(std::move(name), {input}, {g.channels, g.out_height, g.out_width})
      , geometry_(g) {}

  std::unique_ptr<operation> make_operation(kernels::cpu::onednn&, bool) const override {
    return std::make_unique<max_pool2d_operation>(geometry_);
  }

  /// Takes relu, conv2d, or conv2d and relu before it.
  std::unique_ptr<operation> make_joined_operation(std::span<const layer* const> before,
                                                   kernels::cpu::onednn& context,
                                                   bool input_gradient) const override {
    auto geometry = geometry_;
    geometry.of_relu = before.back()->is_relu();
    if (geometry.of_relu) before = before.first(before.size() - 1);
    if (before.empty()) return std::make_unique<max_pool2d_operation>(geometry);
    const auto* const convolution = before.back()->convolution();
    if (before.size() > 1 || convolution == nullptr) return nullptr;
    return std::make_unique<conv2d_max_pool2d_operation>(context, *convolution, geometry, input_gradient);
  }

  layer_description describe() const override { return max_pool_description{geometry_}; }

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
