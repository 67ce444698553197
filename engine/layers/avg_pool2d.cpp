// avg_pool2d and adaptive_avg_pool2d: the same means over differently chosen windows.
#include "engine/layers/layers.hpp"
#include "kernels/cpu/average_pool.hpp"

#include <fmt/format.h>

namespace dlrun::engine {
namespace {

using kernels::cpu::average_geometry;

class average_pool_operation final : public operation {
public:
  explicit average_pool_operation(const average_geometry& geometry)
      : geometry_(geometry) {}

  result<void> forward(const pass& now, std::span<const std::span<const float>> inputs,
                       std::span<float> output) override {
    kernels::cpu::average_pool(geometry_, now.batch, inputs[0], output);
    return {};
  }

  void backward(const pass& now, std::span<const std::span<const float>>, std::span<const float>,
                std::span<const float> output_gradient,
                std::span<const std::span<float>> input_gradients) override {
    if (!input_gradients[0].empty())
      kernels::cpu::average_pool_backward(geometry_, now.batch, output_gradient, input_gradients[0]);
  }

  memory_use memory() const override { return {.inputs_on_way_back = false, .output_on_way_back = false}; }

private:
  const average_geometry& geometry_; ///< the layer's
};

class average_pool_layer final : public layer {
public:
  average_pool_layer(std::string name, const shape& input, average_geometry g)
      : layer(std::move(name), {input},
              {g.channels, static_cast<std::int64_t>(g.rows.size()),
               static_cast<std::int64_t>(g.columns.size())})
      , geometry_(std::move(g)) {}

  layer_description describe() const override { return average_pool_description{geometry_}; }

  std::unique_ptr<operation> make_operation(kernels::cpu::onednn&, bool) const override {
    return std::make_unique<average_pool_operation>(geometry_);
  }

private:
  average_geometry geometry_;
};

/// What is wrong with the arguments themselves, or "".
std::string average_complaint(std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  if (kernel < 1) return fmt::format("kernel_size is {}, but must be at least 1", kernel);
  if (stride < 1) return fmt::format("stride is {}, but must be at least 1", stride);
  if (padding < 0 || padding > kernel / 2)
    return fmt::format("padding is {}, but must be 0 to half of kernel_size {}", padding, kernel);
  return {};
}

} // namespace

layer_result make_avg_pool2d(const spec::AvgPool2d& spec, const std::string& name, const shape& input) {
  if (input.size() != 3) return image_error(name, "avg_pool2d", input);
  const std::int64_t kernel = spec.kernel_size(), padding = spec.padding();
  const std::int64_t stride = spec.has_stride() ? spec.stride() : kernel;
  if (const auto wrong = average_complaint(kernel, stride, padding); !wrong.empty())
    return layer_error(name, "avg_pool2d", wrong);
  const std::int64_t rows = windows(input[1], kernel, stride, padding);
  const std::int64_t columns = windows(input[2], kernel, stride, padding);
  if (rows < 1 || columns < 1)
    return layer_error(
        name, "avg_pool2d",
        fmt::format("a window of [{0}, {0}] does not fit its input {1} with padding {2}; use a smaller "
                    "kernel_size or fewer pooling layers",
                    kernel, to_string(input), padding));
  const bool count_padding = !spec.has_count_include_pad() || spec.count_include_pad();
  const auto along = [&](std::int64_t extent, std::int64_t count) {
    return kernels::cpu::strided_windows(extent, count, kernel, stride, padding, count_padding);
  };
  return std::make_unique<average_pool_layer>(
      name, input,
      average_geometry{input[0], input[1], input[2], along(input[1], rows), along(input[2], columns)});
}

layer_result make_adaptive_avg_pool2d(const spec::AdaptiveAvgPool2d& spec, const std::string& name,
                                      const shape& input) {
  constexpr const char* kind = "adaptive_avg_pool2d";
  if (input.size() != 3) return image_error(name, kind, input);
  const std::int64_t size = spec.output_size();
  if (size < 1)
    return layer_error(name, kind, fmt::format("output_size is {}, but must be at least 1", size));
  if (!element_count({input[0], size, size}))
    return layer_error(
        name, kind,
        fmt::format("{} means for each channel of {} are too many", size * size, to_string(input)));
  return std::make_unique<average_pool_layer>(
      name, input,
      average_geometry{input[0], input[1], input[2], kernels::cpu::adaptive_windows(input[1], size),
                       kernels::cpu::adaptive_windows(input[2], size)});
}

} // namespace dlrun::engine
