#include "kernels/cpu/activations.hpp"

#include "engine/layers/layers.hpp"
#include "job/choices.hpp"

#include <cmath>
#include <fmt/format.h>

namespace dlrun::engine {
namespace {

using kernels::cpu::activation;

class activation_operation final : public operation {
public:
  activation_operation(activation kind, float slope)
      : kind_(kind)
      , slope_(slope) {}

  result<void> forward(const pass&, std::span<const std::span<const float>> inputs,
                       std::span<float> output) override {
    kernels::cpu::activate(kind_, slope_, inputs[0], output);
    return {};
  }

  void backward(const pass&, std::span<const std::span<const float>> inputs, std::span<const float> output,
                std::span<const float> output_gradient,
                std::span<const std::span<float>> input_gradients) override {
    if (!input_gradients[0].empty())
      kernels::cpu::activate_backward(kind_, slope_, inputs[0], output, output_gradient, input_gradients[0]);
  }

  memory_use memory() const override {
    const bool by_output = kernels::cpu::slope_follows_from_output(kind_);
    return {.inputs_on_way_back = !by_output, .output_on_way_back = by_output, .in_place = true};
  }

private:
  activation kind_;
  float slope_;
};

class activation_layer final : public layer {
public:
  activation_layer(std::string name, const shape& input, activation kind, float slope)
      : layer(std::move(name), {input}, input)
      , kind_(kind)
      , slope_(slope) {}

  layer_description describe() const override { return activation_description{kind_, slope_}; }

  std::unique_ptr<operation> make_operation(kernels::cpu::onednn&, bool) const override {
    return std::make_unique<activation_operation>(kind_, slope_);
  }

private:
  activation kind_;
  float slope_;
};

layer_result make_activation(const std::string& name, const shape& input, activation kind, float slope = 0) {
  return std::make_unique<activation_layer>(name, input, kind, slope);
}

} // namespace

layer_result make_gelu(const spec::Gelu& spec, const std::string& name, const shape& input) {
  const auto wanted = job::approximation_of(spec);
  if (!wanted)
    return layer_error(name, "gelu",
                       fmt::format("approximate is '{}', but must be none or tanh", spec.approximate()));
  const bool tanh = *wanted == job::gelu_approximation::tanh;
  return make_activation(name, input, tanh ? activation::gelu_tanh : activation::gelu);
}

layer_result make_silu(const std::string& name, const shape& input) {
  return make_activation(name, input, activation::silu);
}

layer_result make_sigmoid(const std::string& name, const shape& input) {
  return make_activation(name, input, activation::sigmoid);
}

layer_result make_tanh(const std::string& name, const shape& input) {
  return make_activation(name, input, activation::tanh);
}

layer_result make_leaky_relu(const spec::LeakyRelu& spec, const std::string& name, const shape& input) {
  const double slope = spec.has_negative_slope() ? spec.negative_slope() : 0.01;
  if (!std::isfinite(slope))
    return layer_error(name, "leaky_relu", fmt::format("negative_slope is {}, but must be a number", slope));
  return make_activation(name, input, activation::leaky_relu, static_cast<float>(slope));
}

} // namespace dlrun::engine
