#include "engine/layers/layers.hpp"
#include "kernels/cpu/strided.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace dlrun::engine {
namespace {

using kernels::cpu::column_run;

class select_operation final : public operation {
public:
  explicit select_operation(const column_run& run)
      : run_(run) {}

  result<void> forward(const pass&, std::span<const std::span<const float>> inputs,
                       std::span<float> output) override {
    kernels::cpu::read_columns(run_, inputs[0], output);
    return {};
  }

  void backward(const pass&, std::span<const std::span<const float>>, std::span<const float>,
                std::span<const float> output_gradient,
                std::span<const std::span<float>> input_gradients) override {
    if (input_gradients[0].empty()) return;
    std::ranges::fill(input_gradients[0], 0.0F);
    kernels::cpu::write_columns(run_, output_gradient, input_gradients[0]);
  }

  memory_use memory() const override { return {.inputs_on_way_back = false, .output_on_way_back = false}; }

private:
  column_run run_;
};

class select_layer final : public layer {
public:
  select_layer(std::string name, const shape& input, shape output, std::int64_t first)
      : layer(std::move(name), {input}, std::move(output))
      , first_(first) {}

  std::optional<std::int64_t> hands_on_from() const override {
    return input_shape().size() == 1 ? std::optional(first_) : std::nullopt;
  }

  layer_description describe() const override { return select_description{run()}; }

  std::unique_ptr<operation> make_operation(kernels::cpu::onednn&, bool) const override {
    return std::make_unique<select_operation>(run());
  }

private:
  column_run run() const { return {input_shape()[0], first_, output_shape()[0]}; }

  std::int64_t first_;
};

} // namespace

layer_result make_select(const spec::Select& spec, const std::string& name, const shape& input) {
  const std::int64_t first = spec.first(), count = spec.has_count() ? spec.count() : 1;
  if (first < 0) return layer_error(name, "select", fmt::format("first is {}, but must be 0 or more", first));
  if (count < 1)
    return layer_error(name, "select", fmt::format("count is {}, but must be at least 1", count));
  if (first >= input[0] || count > input[0] - first)
    return layer_error(name, "select",
                       fmt::format("takes {} from place {} on, but its input {} has only places 0 to {}",
                                   count, first, to_string(input), input[0] - 1));
  shape output = input;
  output[0] = count;
  return std::make_unique<select_layer>(name, input, std::move(output), first);
}

} // namespace dlrun::engine
