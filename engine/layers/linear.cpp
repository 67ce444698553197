#include "engine/layers/layers.hpp"
#include "kernels/cpu/inner_product.hpp"

#include <fmt/format.h>

namespace dlrun::engine {
namespace {

class linear_operation final : public operation {
public:
  linear_operation(kernels::cpu::onednn& context, std::int64_t in, std::int64_t out, bool bias)
      : bias_(bias)
      , product_(context, in, out, bias) {}

  result<void> forward(const pass& now, std::span<const std::span<const float>> inputs,
                       std::span<float> output) override {
    product_.forward(now.batch, inputs[0].data(), now.tensors[0].data(),
                     bias_ ? now.tensors[1].data() : nullptr, output.data());
    return {};
  }

  void backward(const pass& now, std::span<const std::span<const float>> inputs, std::span<const float>,
                std::span<const float> output_gradient,
                std::span<const std::span<float>> input_gradients) override {
    product_.backward(now.batch, inputs[0].data(), now.tensors[0].data(), output_gradient.data(),
                      now.gradients[0].data(), bias_ ? now.gradients[1].data() : nullptr,
                      input_gradients[0].empty() ? nullptr : input_gradients[0].data());
  }

  memory_use memory() const override { return {.output_on_way_back = false}; }

private:
  bool bias_;
  kernels::cpu::inner_product product_;
};

class linear_layer final : public layer {
public:
  linear_layer(std::string name, std::int64_t in, std::int64_t out, bool bias)
      : layer(std::move(name), {shape{in}}, {out})
      , bias_(bias) {
    const float bound = initial_bound(in);
    add_tensor({"weight", {out, in}, tensor_kind::parameter, -bound, bound});
    if (bias) add_tensor({"bias", {out}, tensor_kind::parameter, -bound, bound});
  }

  layer_description describe() const override {
    return linear_description{input_size(), output_size(), bias_};
  }

  std::unique_ptr<operation> make_operation(kernels::cpu::onednn& context, bool) const override {
    return std::make_unique<linear_operation>(context, input_size(), output_size(), bias_);
  }

private:
  bool bias_;
};

} // namespace

layer_result make_linear(const spec::Linear& spec, const std::string& name, const shape& input) {
  const std::int64_t out = spec.out_features();
  if (input.size() != 1)
    return layer_error(
        name, "linear",
        fmt::format("takes records of shape [features], but gets {}; put a flatten layer before it",
                    to_string(input)));
  if (out < 1)
    return layer_error(name, "linear", fmt::format("out_features is {}, but must be at least 1", out));
  if (!element_count({out, input[0]}))
    return layer_error(name, "linear",
                       fmt::format("a weight of {} is too large", to_string({out, input[0]})));
  return std::make_unique<linear_layer>(name, input[0], out, !spec.has_bias() || spec.bias());
}

} // namespace dlrun::engine
