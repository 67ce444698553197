#include "kernels/cpu/softmax.hpp"

#include "engine/layers/layers.hpp"

namespace dlrun::engine {
namespace {

class softmax_operation final : public operation {
public:
  explicit softmax_operation(std::int64_t channels)
      : channels_(channels) {}

  result<void> forward(const pass&, std::span<const std::span<const float>> inputs,
                       std::span<float> output) override {
    kernels::cpu::softmax(channels_, inputs[0], output);
    return {};
  }

  void backward(const pass&, std::span<const std::span<const float>>, std::span<const float> output,
                std::span<const float> output_gradient,
                std::span<const std::span<float>> input_gradients) override {
    if (!input_gradients[0].empty())
      kernels::cpu::softmax_backward(channels_, output, output_gradient, input_gradients[0]);
  }

  memory_use memory() const override { return {.inputs_on_way_back = false, .in_place = true}; }

private:
  std::int64_t channels_;
};

class softmax_layer final : public layer {
public:
  softmax_layer(std::string name, const shape& input)
      : layer(std::move(name), {input}, input) {}

  layer_description describe() const override { return softmax_description{}; }

  std::unique_ptr<operation> make_operation(kernels::cpu::onednn&, bool) const override {
    return std::make_unique<softmax_operation>(input_shape()[0]);
  }
};

} // namespace

layer_result make_softmax(const std::string& name, const shape& input) {
  return std::make_unique<softmax_layer>(name, input);
}

} // namespace dlrun::engine
