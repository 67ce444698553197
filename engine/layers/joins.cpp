// Layers that read several inputs: add, multiply, concat.
#include "engine/layers/layers.hpp"
#include "kernels/cpu/elementwise.hpp"
#include "kernels/cpu/reduce.hpp"
#include "kernels/cpu/strided.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace dlrun::engine {
namespace {

class add_operation final : public operation {
public:
  result<void> forward(const pass&, std::span<const std::span<const float>> inputs,
                       std::span<float> output) override {
    kernels::cpu::add(inputs[0], inputs[1], output);
    for (const auto input : inputs.subspan(2)) kernels::cpu::add(output, input, output);
    return {};
  }

  void backward(const pass&, std::span<const std::span<const float>>, std::span<const float>,
                std::span<const float> output_gradient,
                std::span<const std::span<float>> input_gradients) override {
    for (const auto gradient : input_gradients)
      if (!gradient.empty() && gradient.data() != output_gradient.data())
        std::ranges::copy(output_gradient, gradient.begin());
  }

  memory_use memory() const override {
    return {.inputs_on_way_back = false, .output_on_way_back = false, .in_place = true};
  }
};

class multiply_operation final : public operation {
public:
  result<void> forward(const pass&, std::span<const std::span<const float>> inputs,
                       std::span<float> output) override {
    kernels::cpu::multiply(inputs[0], inputs[1], output);
    for (const auto input : inputs.subspan(2)) kernels::cpu::multiply(output, input, output);
    return {};
  }

  /// Each factor's gradient is the output's times the other factors, in their order; never divided,
  /// since a factor may be 0.
  void backward(const pass&, std::span<const std::span<const float>> inputs, std::span<const float>,
                std::span<const float> output_gradient,
                std::span<const std::span<float>> input_gradients) override {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto gradient = input_gradients[i];
      if (gradient.empty()) continue;
      std::ranges::copy(output_gradient, gradient.begin());
      for (std::size_t other = 0; other < inputs.size(); ++other)
        if (other != i) kernels::cpu::multiply(gradient, inputs[other], gradient);
    }
  }

  memory_use memory() const override { return {.output_on_way_back = false}; }
};

/// Channels are innermost, so that joining them is joining the rows of matrices, a row a pixel.
class concat_operation final : public operation {
public:
  explicit concat_operation(const concat_description& what)
      : runs_(what.runs) {}

  result<void> forward(const pass&, std::span<const std::span<const float>> inputs,
                       std::span<float> output) override {
    for (std::size_t i = 0; i < runs_.size(); ++i) kernels::cpu::write_columns(runs_[i], inputs[i], output);
    return {};
  }

  void backward(const pass&, std::span<const std::span<const float>>, std::span<const float>,
                std::span<const float> output_gradient,
                std::span<const std::span<float>> input_gradients) override {
    for (std::size_t i = 0; i < runs_.size(); ++i)
      if (!input_gradients[i].empty())
        kernels::cpu::read_columns(runs_[i], output_gradient, input_gradients[i]);
  }

  memory_use memory() const override { return {.inputs_on_way_back = false, .output_on_way_back = false}; }

private:
  std::vector<kernels::cpu::column_run> runs_;
};

class add_layer final : public layer {
public:
  add_layer(std::string name, const std::vector<shape>& inputs)
      : layer(std::move(name), inputs, inputs[0]) {}

  layer_description describe() const override { return add_description{}; }

  std::unique_ptr<operation> make_operation(kernels::cpu::onednn&, bool) const override {
    return std::make_unique<add_operation>();
  }
};

class multiply_layer final : public layer {
public:
  multiply_layer(std::string name, const std::vector<shape>& inputs)
      : layer(std::move(name), inputs, inputs[0]) {}

  layer_description describe() const override { return multiply_description{}; }

  std::unique_ptr<operation> make_operation(kernels::cpu::onednn&, bool) const override {
    return std::make_unique<multiply_operation>();
  }
};

concat_description runs_of(const std::vector<shape>& inputs) {
  concat_description what;
  std::int64_t width = 0;
  for (const auto& input : inputs) {
    what.runs.push_back({.first = width, .count = input[0]});
    width += input[0];
  }
  for (auto& run : what.runs) run.width = width;
  return what;
}

class concat_layer final : public layer {
public:
  concat_layer(std::string name, const std::vector<shape>& inputs, shape output)
      : layer(std::move(name), inputs, std::move(output))
      , what_(runs_of(inputs)) {}

  layer_description describe() const override { return what_; }

  std::unique_ptr<operation> make_operation(kernels::cpu::onednn&, bool) const override {
    return std::make_unique<concat_operation>(what_);
  }

private:
  concat_description what_;
};

std::string list_of(const std::vector<shape>& inputs) {
  std::string text;
  for (const auto& input : inputs) text += (text.empty() ? "" : ", ") + to_string(input);
  return text;
}

/// What is wrong with inputs that must be alike, or "".
std::string unlike_complaint(const std::vector<shape>& inputs) {
  const bool alike = std::ranges::all_of(inputs, [&](const shape& input) { return input == inputs[0]; });
  return alike ? "" : fmt::format("takes inputs of one shape, but gets {}", list_of(inputs));
}

} // namespace

layer_result make_add(const std::string& name, const std::vector<shape>& inputs) {
  if (const auto wrong = unlike_complaint(inputs); !wrong.empty()) return layer_error(name, "add", wrong);
  return std::make_unique<add_layer>(name, inputs);
}

layer_result make_multiply(const std::string& name, const std::vector<shape>& inputs) {
  if (const auto wrong = unlike_complaint(inputs); !wrong.empty())
    return layer_error(name, "multiply", wrong);
  return std::make_unique<multiply_layer>(name, inputs);
}

layer_result make_concat(const std::string& name, const std::vector<shape>& inputs) {
  shape output = inputs[0];
  output[0] = 0;
  for (const auto& input : inputs) {
    if (!std::ranges::equal(std::span(input).subspan(1), std::span(inputs[0]).subspan(1)))
      return layer_error(name, "concat",
                         fmt::format("joins channels or features, so that its inputs must agree in the other "
                                     "dimensions, but gets {}",
                                     list_of(inputs)));
    output[0] += input[0];
  }
  if (!element_count(output))
    return layer_error(name, "concat", fmt::format("an output of {} is too large", to_string(output)));
  return std::make_unique<concat_layer>(name, inputs, std::move(output));
}

} // namespace dlrun::engine
