#include "kernels/cpu/batch_norm.hpp"
#include "engine/layers/layers.hpp"

#include <fmt/format.h>

namespace dlrun::engine {
namespace {

/// Order of the layer's tensors: weight and bias where it is affine, then the running statistics.
class batch_norm_operation final : public operation {
public:
  batch_norm_operation(std::int64_t channels, float eps, bool affine)
      : eps_(eps)
      , affine_(affine)
      , mean_(static_cast<std::size_t>(channels))
      , inverse_deviation_(mean_.size()) {}

  result<void> forward(const pass& now, std::span<const std::span<const float>> inputs,
                       std::span<float> output) override {
    if (now.training)
      take_statistics(now, inputs[0]);
    else
      use_running_statistics(now);
    const auto weight = affine_ ? now.tensors[0] : std::span<const float>();
    const auto bias = affine_ ? now.tensors[1] : std::span<const float>();
    kernels::cpu::normalise(mean_, inverse_deviation_, weight, bias, inputs[0], output);
    return {};
  }

  void backward(const pass& now, std::span<const std::span<const float>> inputs, std::span<const float>,
                std::span<const float> output_gradient,
                std::span<const std::span<float>> input_gradients) override {
    const auto weight = affine_ ? now.tensors[0] : std::span<const float>();
    const auto weight_gradient = affine_ ? now.gradients[0] : std::span<float>();
    const auto bias_gradient = affine_ ? now.gradients[1] : std::span<float>();
    kernels::cpu::batch_norm_backward(rows(inputs[0]), mean_, inverse_deviation_, weight, inputs[0],
                                      output_gradient, weight_gradient, bias_gradient, input_gradients[0]);
  }

  memory_use memory() const override { return {.output_on_way_back = false}; }

private:
  /// Values of each channel: one a record, or one a pixel.
  std::int64_t rows(std::span<const float> input) const {
    return static_cast<std::int64_t>(input.size() / mean_.size());
  }

  void take_statistics(const pass& now, std::span<const float> input) {
    const std::size_t running = affine_ ? 2 : 0;
    kernels::cpu::batch_statistics(rows(input), eps_, input,
                                   {mean_, now.gradients[running + 1], inverse_deviation_});
    std::copy(mean_.begin(), mean_.end(), now.gradients[running].begin());
  }

  void use_running_statistics(const pass& now) {
    const std::size_t running = affine_ ? 2 : 0;
    std::copy(now.tensors[running].begin(), now.tensors[running].end(), mean_.begin());
    kernels::cpu::inverse_deviation(eps_, now.tensors[running + 1], inverse_deviation_);
  }

  float eps_;
  bool affine_;
  std::vector<float> mean_, inverse_deviation_;
};

class batch_norm_layer final : public layer {
public:
  batch_norm_layer(std::string name, const shape& input, float eps, float momentum, bool affine)
      : layer(std::move(name), {input}, input)
      , eps_(eps)
      , affine_(affine) {
    const shape channels{input[0]};
    if (affine) {
      add_tensor({"weight", channels, tensor_kind::parameter, 1, 1});
      add_tensor({"bias", channels, tensor_kind::parameter, 0, 0});
    }
    add_tensor({"running_mean", channels, tensor_kind::buffer, 0, 0, momentum});
    add_tensor({"running_var", channels, tensor_kind::buffer, 1, 1, momentum});
  }

  /// A variance needs two values of each channel.
  std::int64_t min_batch() const override { return input_size() > input_shape()[0] ? 1 : 2; }

  layer_description describe() const override { return batch_norm_description{eps_, affine_}; }

  std::unique_ptr<operation> make_operation(kernels::cpu::onednn&, bool) const override {
    return std::make_unique<batch_norm_operation>(input_shape()[0], eps_, affine_);
  }

private:
  float eps_;
  bool affine_;
};

} // namespace

layer_result make_batch_norm(const spec::BatchNorm& spec, const std::string& name, const shape& input) {
  const double eps = spec.has_eps() ? spec.eps() : 1e-5;
  const double momentum = spec.has_momentum() ? spec.momentum() : 0.1;
  if (!(eps > 0 && eps <= 1))
    return layer_error(name, "batch_norm", fmt::format("eps is {}, but must be above 0 and at most 1", eps));
  if (!(momentum >= 0 && momentum <= 1))
    return layer_error(name, "batch_norm", fmt::format("momentum is {}, but must be 0 to 1", momentum));
  return std::make_unique<batch_norm_layer>(name, input, static_cast<float>(eps),
                                            static_cast<float>(momentum),
                                            !spec.has_affine() || spec.affine());
}

} // namespace dlrun::engine
