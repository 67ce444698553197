#include "engine/layers/layers.hpp"
#include "kernels/cpu/elementwise.hpp"

namespace dlrun::engine {
namespace {

class relu_operation final : public operation {
public:
  result<void> forward(const pass&, std::span<const std::span<const float>> inputs,
                       std::span<float> output) override {
    kernels::cpu::relu(inputs[0], output);
    return {};
  }

  void backward(const pass&, std::span<const std::span<const float>>, std::span<const float> output,
                std::span<const float> output_gradient,
                std::span<const std::span<float>> input_gradients) override {
    if (!input_gradients[0].empty()) kernels::cpu::relu_backward(output, output_gradient, input_gradients[0]);
  }

  memory_use memory() const override { return {.inputs_on_way_back = false, .in_place = true}; }
};

class relu_layer final : public layer {
public:
  relu_layer(std::string name, const shape& input)
      : layer(std::move(name), {input}, input) {}

  layer_description describe() const override { return relu_description{}; }

  std::unique_ptr<operation> make_operation(kernels::cpu::onednn&, bool) const override {
    return std::make_unique<relu_operation>();
  }

  bool is_relu() const override { return true; }
};

} // namespace

layer_result make_relu(const std::string& name, const shape& input) {
  return std::make_unique<relu_layer>(name, input);
}

} // namespace dlrun::engine
