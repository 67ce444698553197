/// A `dlrun` with one layer of its own, which hands on what it gets.
#pragma once

#include <algorithm>
#include <dlrun/layer.hpp>
#include <dlrun/training.hpp>

namespace dlrun::test {

/// Copies its input, and the gradient back; what else a pass of the training does is its own.
class handing_on : public operation {
public:
  result<void> forward(const pass& now, std::span<const std::span<const float>> inputs,
                       std::span<float> output) final {
    std::ranges::copy(inputs[0], output.begin());
    if (now.training)
      while_training(now, inputs[0]);
    else
      while_predicting();
    return {};
  }
  void backward(const pass&, std::span<const std::span<const float>>, std::span<const float>,
                std::span<const float> output_gradient,
                std::span<const std::span<float>> input_gradients) final {
    if (!input_gradients[0].empty()) std::ranges::copy(output_gradient, input_gradients[0].begin());
  }

private:
  virtual void while_training(const pass& now, std::span<const float> input) = 0;
  virtual void while_predicting() {}
};

template <class Operation>
class own_layer final : public custom_layer {
public:
  explicit own_layer(shape input)
      : input_(std::move(input)) {}

  shape output_shape() const override { return input_; }
  std::unique_ptr<operation> make_operation() const override { return std::make_unique<Operation>(); }

private:
  shape input_;
};

/// A layer of this kind for all jobs of the process.
template <class Operation>
result<void> register_own_layer(const char* kind) {
  using made_layer = result<std::unique_ptr<const custom_layer>>;
  return register_layer(kind, [](const layer_request& request) -> made_layer {
    return std::make_unique<own_layer<Operation>>(request.inputs.front());
  });
}

/// For `main()`: the command line, with a layer of this kind. @returns the exit code.
template <class Operation>
int run_with_layer(const char* kind, int argc, char** argv) {
  return register_own_layer<Operation>(kind) ? run_command_line(argc, argv) : 1;
}

} // namespace dlrun::test
