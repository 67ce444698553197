#include "engine/layers/channel_order.hpp"
#include "engine/layers/layers.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace dlrun::engine {
namespace {

/// The values keep their order with channels first, which activations do not have: so this layer
/// moves data, where PyTorch's does not.
class reshape_operation final : public operation {
public:
  reshape_operation(const shape& input, const shape& output)
      : input_(input)
      , output_(output) {}

  result<void> forward(const pass& now, std::span<const std::span<const float>> inputs,
                       std::span<float> output) override {
    output_.to_last(now.batch, input_.to_first(now.batch, inputs[0], ordered_), output);
    return {};
  }

  void backward(const pass& now, std::span<const std::span<const float>>, std::span<const float>,
                std::span<const float> output_gradient,
                std::span<const std::span<float>> input_gradients) override {
    if (input_gradients[0].empty()) return;
    input_.to_last(now.batch, output_.to_first(now.batch, output_gradient, ordered_), input_gradients[0]);
  }

  memory_use memory() const override { return {.inputs_on_way_back = false, .output_on_way_back = false}; }

private:
  channel_order input_, output_;
  std::vector<float> ordered_;
};

class reshape_layer final : public layer {
public:
  reshape_layer(std::string name, const shape& input, shape output)
      : layer(std::move(name), {input}, std::move(output)) {}

  bool is_identity() const override {
    return channel_order(input_shape()).same() && channel_order(output_shape()).same();
  }

  layer_description describe() const override { return reshape_description{}; }

  std::unique_ptr<operation> make_operation(kernels::cpu::onednn&, bool) const override {
    return std::make_unique<reshape_operation>(input_shape(), output_shape());
  }
};

/// `wanted` with its -1, if it has one, replaced by what is left of `size` values; empty where that
/// is no shape of `size` values.
shape resolved(shape wanted, std::int64_t size) {
  const auto open = std::ranges::find(wanted, -1);
  if (open != wanted.end()) {
    *open = 1;
    const auto others = element_count(wanted);
    if (!others || size % *others != 0) return {};
    *open = size / *others;
  }
  const auto count = element_count(wanted);
  return count && *count == size ? wanted : shape{};
}

} // namespace

layer_result make_reshape(const spec::Reshape& spec, const std::string& name, const shape& input) {
  const shape wanted(spec.shape().begin(), spec.shape().end());
  if (wanted.empty() || wanted.size() > 3)
    return layer_error(name, "reshape",
                       fmt::format("shape is {}, but must have 1 to 3 extents", to_string(wanted)));
  if (std::ranges::count(wanted, -1) > 1 ||
      std::ranges::any_of(wanted, [](auto e) { return e < -1 || e == 0; }))
    return layer_error(name, "reshape",
                       fmt::format("shape is {}, but its extents must be at least 1, or one of them -1 for "
                                   "what is left",
                                   to_string(wanted)));
  const std::int64_t size = element_count(input).value();
  shape output = resolved(wanted, size);
  if (output.empty())
    return layer_error(name, "reshape",
                       fmt::format("the {} values of its input {} do not fit shape {}", size,
                                   to_string(input), to_string(wanted)));
  return std::make_unique<reshape_layer>(name, input, std::move(output));
}

} // namespace dlrun::engine
