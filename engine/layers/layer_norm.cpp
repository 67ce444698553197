#include "engine/layers/channel_order.hpp"
#include "engine/layers/layers.hpp"
#include "kernels/cpu/group_norm.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace dlrun::engine {
namespace {

/// With channels first, the normalised dimensions are the innermost: a record is rows of `width`
/// values, each with its own statistics, and the weights are those of a row.
class layer_norm_operation final : public operation {
public:
  layer_norm_operation(const shape& input, std::int64_t width, float eps, bool affine)
      : order_(input)
      , rows_(*element_count(input) / width)
      , geometry_{1, width, 1, eps}
      , affine_(affine) {}

  result<void> forward(const pass& now, std::span<const std::span<const float>> inputs,
                       std::span<float> output) override {
    const auto x = order_.to_first(now.batch, inputs[0], ordered_input_);
    mean_.resize(static_cast<std::size_t>(now.batch * rows_));
    inverse_deviation_.resize(mean_.size());
    ordered_result_.resize(order_.same() ? 0 : output.size());
    const auto y = order_.same() ? output : std::span<float>(ordered_result_);
    kernels::cpu::group_norm(
        geometry_, now.batch * rows_, x, affine_ ? now.tensors[0] : std::span<const float>(),
        affine_ ? now.tensors[1] : std::span<const float>(), y, mean_, inverse_deviation_);
    if (!order_.same()) order_.to_last(now.batch, y, output);
    return {};
  }

  void backward(const pass& now, std::span<const std::span<const float>> inputs, std::span<const float>,
                std::span<const float> output_gradient,
                std::span<const std::span<float>> input_gradients) override {
    const auto x = order_.same() ? inputs[0] : std::span<const float>(ordered_input_);
    const auto dy = order_.to_first(now.batch, output_gradient, ordered_gradient_);
    const auto wanted = input_gradients[0];
    ordered_result_.resize(order_.same() ? 0 : wanted.size());
    const auto dx = order_.same() ? wanted : std::span<float>(ordered_result_);
    kernels::cpu::group_norm_backward(geometry_, now.batch * rows_, x, mean_, inverse_deviation_,
                                      affine_ ? now.tensors[0] : std::span<const float>(), dy,
                                      affine_ ? now.gradients[0] : std::span<float>(),
                                      affine_ ? now.gradients[1] : std::span<float>(), dx);
    if (!order_.same() && !wanted.empty()) order_.to_last(now.batch, dx, wanted);
  }

  memory_use memory() const override {
    return {.inputs_on_way_back = order_.same(), .output_on_way_back = false};
  }

private:
  channel_order order_;
  std::int64_t rows_; ///< of a record
  kernels::cpu::group_geometry geometry_;
  bool affine_;
  std::vector<float> mean_, inverse_deviation_;
  std::vector<float> ordered_input_, ordered_gradient_,
      ordered_result_; ///< with channels first, where that differs
};

class layer_norm_layer final : public layer {
public:
  layer_norm_layer(std::string name, const shape& input, const shape& normalized, float eps, bool affine)
      : layer(std::move(name), {input}, input)
      , width_(element_count(normalized).value())
      , eps_(eps)
      , affine_(affine) {
    if (!affine) return;
    add_tensor({"weight", normalized, tensor_kind::parameter, 1, 1});
    add_tensor({"bias", normalized, tensor_kind::parameter, 0, 0});
  }

  layer_description describe() const override { return layer_norm_description{width_, eps_, affine_}; }

  std::unique_ptr<operation> make_operation(kernels::cpu::onednn&, bool) const override {
    return std::make_unique<layer_norm_operation>(input_shape(), width_, eps_, affine_);
  }

private:
  std::int64_t width_;
  float eps_;
  bool affine_;
};

} // namespace

layer_result make_layer_norm(const spec::LayerNorm& spec, const std::string& name, const shape& input) {
  const double eps = spec.has_eps() ? spec.eps() : 1e-5;
  if (!(eps > 0 && eps <= 1))
    return layer_error(name, "layer_norm", fmt::format("eps is {}, but must be above 0 and at most 1", eps));
  shape normalized(spec.normalized_shape().begin(), spec.normalized_shape().end());
  if (normalized.empty()) normalized = input;
  if (normalized.size() > input.size() || !std::equal(normalized.rbegin(), normalized.rend(), input.rbegin()))
    return layer_error(name, "layer_norm",
                       fmt::format("normalized_shape {} is not how its input {} ends", to_string(normalized),
                                   to_string(input)));
  return std::make_unique<layer_norm_layer>(name, input, normalized, static_cast<float>(eps),
                                            !spec.has_elementwise_affine() || spec.elementwise_affine());
}

} // namespace dlrun::engine
