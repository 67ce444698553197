// Layers that compute each value by itself: activations, dropout, sums and products.
#include "engine/cuda/device_operations.hpp"

#include <dlrun/check.hpp>
#include <optional>

namespace dlrun::engine {
namespace {

namespace cuda = kernels::cuda;
using cuda::lane;

class relu_operation final : public backend_operation {
public:
  explicit relu_operation(cuda::device& on)
      : on_{on} {}

  result<void> forward(const pass&, std::span<const activations> inputs, activations output) override {
    on_.run(lane::compute, cuda::relu_forward{inputs[0].data(), output.data(), number_count(output)});
    return {};
  }

  void backward(const pass&, std::span<const activations>, activations output, activations output_gradient,
                std::span<const activations> input_gradients) override {
    if (!input_gradients[0].empty())
      on_.run(lane::compute, cuda::relu_backward{output.data(), output_gradient.data(),
                                                 input_gradients[0].data(), number_count(output)});
  }

  memory_use memory() const override { return {.inputs_on_way_back = false, .in_place = true}; }

private:
  cuda::device& on_;
};

class activation_operation final : public backend_operation {
public:
  activation_operation(cuda::device& on, const activation_description& what)
      : on_{on}
      , what_{what} {}

  result<void> forward(const pass&, std::span<const activations> inputs, activations output) override {
    on_.run(lane::compute, cuda::activate_forward{what_.kind, what_.slope, inputs[0].data(), output.data(),
                                                  number_count(output)});
    return {};
  }

  void backward(const pass&, std::span<const activations> inputs, activations output,
                activations output_gradient, std::span<const activations> input_gradients) override {
    if (!input_gradients[0].empty())
      on_.run(lane::compute, cuda::activate_backward{what_.kind, what_.slope, inputs[0].data(), output.data(),
                                                     output_gradient.data(), input_gradients[0].data(),
                                                     number_count(output)});
  }

  memory_use memory() const override {
    const bool by_output = kernels::cpu::slope_follows_from_output(what_.kind);
    return {.inputs_on_way_back = !by_output, .output_on_way_back = by_output, .in_place = true};
  }

private:
  cuda::device& on_;
  activation_description what_;
};

class dropout_operation final : public backend_operation {
public:
  dropout_operation(cuda::device& on, pass_key& key, const dropout_description& what)
      : on_{on}
      , key_{key}
      , what_{what} {}

  result<void> forward(const pass& now, std::span<const activations> inputs, activations output) override {
    if (!now.training) {
      if (output.data() != inputs[0].data())
        on_.run(lane::compute, cuda::copy_activations{inputs[0].data(), output.data(), number_count(output)});
      return {};
    }
    const auto there = key_.bring(now.key);
    if (!there) return tl::unexpected(there.error());
    brought_ = *there;
    mask(now, inputs[0], output);
    return {};
  }

  void backward(const pass& now, std::span<const activations>, activations, activations output_gradient,
                std::span<const activations> input_gradients) override {
    if (!input_gradients[0].empty()) mask(now, output_gradient, input_gradients[0]);
  }

  memory_use memory() const override {
    return {.inputs_on_way_back = false, .output_on_way_back = false, .in_place = true};
  }

private:
  /// That of (seed, step, slot, layer), drawn anew: cheaper than keeping it.
  void mask(const pass& now, activations from, activations to) {
    on_.run(lane::compute, cuda::dropout{brought_, now.layer, what_.p, what_.scale, from.data(), to.data(),
                                         number_count(to)});
  }

  cuda::device& on_;
  pass_key& key_;
  dropout_description what_;
  const slot_key* brought_ = nullptr;
};

class add_operation final : public backend_operation {
public:
  explicit add_operation(cuda::device& on)
      : on_{on} {}

  result<void> forward(const pass&, std::span<const activations> inputs, activations output) override {
    add(inputs[0], inputs[1], output);
    for (const auto input : inputs.subspan(2)) add(output, input, output);
    return {};
  }

  void backward(const pass&, std::span<const activations>, activations, activations output_gradient,
                std::span<const activations> input_gradients) override {
    for (const auto gradient : input_gradients)
      if (!gradient.empty() && gradient.data() != output_gradient.data())
        on_.run(lane::compute,
                cuda::copy_activations{output_gradient.data(), gradient.data(), number_count(gradient)});
  }

  memory_use memory() const override {
    return {.inputs_on_way_back = false, .output_on_way_back = false, .in_place = true};
  }

private:
  void add(activations a, activations b, activations to) {
    on_.run(lane::compute, cuda::add{a.data(), b.data(), to.data(), number_count(to)});
  }

  cuda::device& on_;
};

class multiply_operation final : public backend_operation {
public:
  explicit multiply_operation(cuda::device& on)
      : on_{on} {}

  result<void> forward(const pass&, std::span<const activations> inputs, activations output) override {
    multiply(inputs[0], inputs[1], output);
    for (const auto input : inputs.subspan(2)) multiply(output, input, output);
    return {};
  }

  void backward(const pass&, std::span<const activations> inputs, activations, activations output_gradient,
                std::span<const activations> input_gradients) override {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto gradient = input_gradients[i];
      if (gradient.empty()) continue;
      on_.run(lane::compute,
              cuda::copy_activations{output_gradient.data(), gradient.data(), number_count(gradient)});
      for (std::size_t other = 0; other < inputs.size(); ++other)
        if (other != i) multiply(gradient, inputs[other], gradient);
    }
  }

  memory_use memory() const override { return {.output_on_way_back = false}; }

private:
  void multiply(activations a, activations b, activations to) {
    on_.run(lane::compute, cuda::multiply{a.data(), b.data(), to.data(), number_count(to)});
  }

  cuda::device& on_;
};

} // namespace

device_operation make_device_relu(cuda::device& device) { return {std::make_unique<relu_operation>(device)}; }

device_operation make_device_activation(cuda::device& device, const activation_description& what) {
  return {std::make_unique<activation_operation>(device, what)};
}

device_operation make_device_dropout(const operation_parts& parts, const dropout_description& what) {
  return {std::make_unique<dropout_operation>(parts.device, parts.key, what)};
}

device_operation make_device_add(cuda::device& device) { return {std::make_unique<add_operation>(device)}; }

device_operation make_device_multiply(cuda::device& device) {
  return {std::make_unique<multiply_operation>(device)};
}

} // namespace dlrun::engine
