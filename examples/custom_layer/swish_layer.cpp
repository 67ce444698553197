#include "own_parts.hpp"

#include <cmath>
#include <dlrun/layer.hpp>

namespace {

/// Ramachandran, Zoph, Le: "Searching for activation functions" (2017).
class swish_operation final : public dlrun::operation {
public:
  dlrun::result<void> forward(const dlrun::pass& now, std::span<const std::span<const float>> inputs,
                              std::span<float> output) override {
    const float beta = now.tensors[0][0];
    for (std::size_t i = 0; i < output.size(); ++i) output[i] = inputs[0][i] * sigmoid(beta * inputs[0][i]);
    return {};
  }

  void backward(const dlrun::pass& now, std::span<const std::span<const float>> inputs,
                std::span<const float>, std::span<const float> output_gradient,
                std::span<const std::span<float>> input_gradients) override {
    const float beta = now.tensors[0][0];
    double beta_gradient = 0; // always added in the same order: the same bits wherever it is computed
    for (std::size_t i = 0; i < output_gradient.size(); ++i) {
      const float x = inputs[0][i];
      const float s = sigmoid(beta * x);
      const float slope = s * (1 - s);
      beta_gradient += static_cast<double>(output_gradient[i] * x * x * slope);
      if (!input_gradients[0].empty()) input_gradients[0][i] = output_gradient[i] * (s + beta * x * slope);
    }
    now.gradients[0][0] = static_cast<float>(beta_gradient);
  }

  /// backward() reads what went in, not what came out, and each value before it is written.
  dlrun::memory_use memory() const override { return {.output_on_way_back = false, .in_place = true}; }

private:
  static float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }
};

class swish_layer final : public dlrun::custom_layer {
public:
  swish_layer(dlrun::shape input, float beta)
      : input_(std::move(input))
      , beta_(beta) {}

  dlrun::shape output_shape() const override { return input_; }
  std::vector<dlrun::layer_tensor> tensors() const override {
    return {{.name = "beta", .extents = {1}, .low = beta_, .high = beta_}};
  }
  bool any_order() const override { return true; } // each value for itself
  std::unique_ptr<dlrun::operation> make_operation() const override {
    return std::make_unique<swish_operation>();
  }

private:
  dlrun::shape input_;
  float beta_;
};

} // namespace

dlrun::result<void> register_swish() {
  using layer_result = dlrun::result<std::unique_ptr<const dlrun::custom_layer>>;
  return dlrun::register_layer("swish", [](const dlrun::layer_request& request) -> layer_result {
    if (const auto fine = dlrun::check_options(request.options, {"beta"}, request.name); !fine)
      return tl::unexpected(fine.error());
    const auto beta = dlrun::number_option(request.options, "beta", 1.0F, request.name);
    if (!beta) return tl::unexpected(beta.error());
    return std::make_unique<swish_layer>(request.inputs.front(), *beta);
  });
}
