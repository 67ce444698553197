#include "engine/layers/layers.hpp"
#include "kernels/cpu/elementwise.hpp"
#include <dlrun/random.hpp>

#include <algorithm>
#include <fmt/format.h>

namespace dlrun::engine {
namespace {

class dropout_operation final : public operation {
public:
  explicit dropout_operation(const dropout_description& what)
      : what_(what) {}

  result<void> forward(const pass& now, std::span<const std::span<const float>> inputs,
                       std::span<float> output) override {
    if (!now.training) {
      if (output.data() != inputs[0].data()) std::ranges::copy(inputs[0], output.begin());
      return {};
    }
    draw_mask(now, output.size());
    kernels::cpu::multiply(inputs[0], mask_, output);
    return {};
  }

  void backward(const pass&, std::span<const std::span<const float>>, std::span<const float>,
                std::span<const float> output_gradient,
                std::span<const std::span<float>> input_gradients) override {
    if (!input_gradients[0].empty()) kernels::cpu::multiply(output_gradient, mask_, input_gradients[0]);
  }

  memory_use memory() const override {
    return {.inputs_on_way_back = false, .output_on_way_back = false, .in_place = true};
  }

private:
  /// The mask of (seed, step, slot, layer): the same for whoever computes this slot.
  void draw_mask(const pass& now, std::size_t size) {
    const auto stream = now.random(random_purpose::dropout);
    mask_.resize(size);
    for (std::size_t i = 0; i < size; i += 4) {
      const auto words = stream.words(i / 4);
      for (std::size_t k = 0; k < std::min<std::size_t>(4, size - i); ++k)
        mask_[i + k] = random_stream::uniform(words[k]) < what_.p ? 0.0F : what_.scale;
    }
  }

  dropout_description what_;
  std::vector<float> mask_;
};

class dropout_layer final : public layer {
public:
  dropout_layer(std::string name, const shape& input, double p)
      : layer(std::move(name), {input}, input)
      , what_{static_cast<float>(p), static_cast<float>(1.0 / (1.0 - p))} {}

  layer_description describe() const override { return what_; }

  std::unique_ptr<operation> make_operation(kernels::cpu::onednn&, bool) const override {
    return std::make_unique<dropout_operation>(what_);
  }

private:
  dropout_description what_;
};

} // namespace

layer_result make_dropout(const spec::Dropout& spec, const std::string& name, const shape& input) {
  const double p = spec.has_p() ? spec.p() : 0.5;
  if (!(p >= 0 && p < 1))
    return layer_error(name, "dropout", fmt::format("p is {}, but must be at least 0 and below 1", p));
  return std::make_unique<dropout_layer>(name, input, p);
}

} // namespace dlrun::engine
