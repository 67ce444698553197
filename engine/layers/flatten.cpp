#include "engine/layers/channel_order.hpp"
#include "engine/layers/layers.hpp"
#include "kernels/cpu/permute.hpp"

namespace dlrun::engine {
namespace {

/// PyTorch flattens channels first, activations here are channels last: so this layer moves data,
/// where PyTorch's does not, unless there is one channel or one pixel.
class flatten_operation final : public operation {
public:
  explicit flatten_operation(const shape& input)
      : extents_(input) {}

  result<void> forward(const pass& now, std::span<const std::span<const float>> inputs,
                       std::span<float> output) override {
    transpose(now.batch, inputs[0], output, extents_.pixels, extents_.channels);
    return {};
  }

  void backward(const pass& now, std::span<const std::span<const float>>, std::span<const float>,
                std::span<const float> output_gradient,
                std::span<const std::span<float>> input_gradients) override {
    if (!input_gradients[0].empty())
      transpose(now.batch, output_gradient, input_gradients[0], extents_.channels, extents_.pixels);
  }

  memory_use memory() const override { return {.inputs_on_way_back = false, .output_on_way_back = false}; }

private:
  void transpose(std::int64_t batch, std::span<const float> from, std::span<float> to, std::int64_t rows,
                 std::int64_t columns) const {
    kernels::cpu::transpose(batch, rows, columns, from, to);
  }

  channel_extents extents_;
};

class flatten_layer final : public layer {
public:
  flatten_layer(std::string name, const shape& input, std::int64_t size)
      : layer(std::move(name), {input}, {size}) {}

  std::optional<std::int64_t> hands_on_from() const override {
    return input_shape().size() == 1 ? std::optional(std::int64_t{0}) : std::nullopt;
  }

  bool is_identity() const override { return channel_order(input_shape()).same(); }

  layer_description describe() const override { return reshape_description{}; }

  std::unique_ptr<operation> make_operation(kernels::cpu::onednn&, bool) const override {
    return std::make_unique<flatten_operation>(input_shape());
  }
};

} // namespace

layer_result make_flatten(const std::string& name, const shape& input) {
  return std::make_unique<flatten_layer>(name, input, element_count(input).value());
}

} // namespace dlrun::engine
