// Layers whose arithmetic is a library's: linear, and convolutions.
#include "engine/cuda/device_array.hpp"
#include "engine/cuda/device_operations.hpp"

namespace dlrun::engine {
namespace {

namespace cuda = kernels::cuda;
using cuda::lane;
using kernels::cpu::convolution_geometry;

class linear_operation final : public backend_operation {
public:
  /// `relu`: of what the layer gives, in the same step.
  linear_operation(cuda::device& on, const linear_description& what, bool relu)
      : on_{on}
      , what_{what}
      , relu_{relu}
      , narrow_weights_{on} {}

  result<void> forward(const pass& now, std::span<const activations> inputs, activations output) override {
    if (auto there = bring_weights(now.tensors[0]); !there) return there;
    on_.run(lane::compute, cuda::product{.m = now.batch,
                                         .n = what_.out,
                                         .k = what_.in,
                                         .transpose_a = false,
                                         .transpose_b = true,
                                         .a = inputs[0].data(),
                                         .b = weights_,
                                         .row = what_.bias ? now.tensors[1].data() : nullptr,
                                         .c = output.data(),
                                         .relu = relu_});
    return {};
  }

  void backward(const pass& now, std::span<const activations> inputs, activations output,
                activations output_gradient, std::span<const activations> input_gradients) override {
    if (relu_)
      on_.run(lane::compute, cuda::relu_backward{output.data(), output_gradient.data(),
                                                 output_gradient.data(), number_count(output)});
    on_.run(lane::compute, cuda::product{.m = what_.out,
                                         .n = what_.in,
                                         .k = now.batch,
                                         .transpose_a = true,
                                         .transpose_b = false,
                                         .a = output_gradient.data(),
                                         .b = inputs[0].data(),
                                         .row = nullptr,
                                         .c = now.gradients[0].data(),
                                         .c_is_floats = true});
    if (what_.bias)
      on_.run(lane::compute,
              cuda::sum_columns{now.batch, what_.out, output_gradient.data(), now.gradients[1].data()});
    if (!input_gradients[0].empty())
      on_.run(lane::compute, cuda::product{.m = now.batch,
                                           .n = what_.in,
                                           .k = what_.out,
                                           .transpose_a = false,
                                           .transpose_b = false,
                                           .a = output_gradient.data(),
                                           .b = weights_,
                                           .row = nullptr,
                                           .c = input_gradients[0].data()});
  }

  memory_use memory() const override { return {.output_on_way_back = relu_}; }

private:
  /// For the pass that begins: as activations are, since they are multiplied with those.
  result<void> bring_weights(std::span<const float> weights) {
    weights_ = weights.data();
    if (!stores_less(on_)) return {};
    if (auto room = narrow_weights_.resize(weights.size()); !room) return room;
    on_.run(lane::compute,
            cuda::narrow{weights.data(), narrow_weights_.data(), static_cast<std::int64_t>(weights.size())});
    weights_ = narrow_weights_.data();
    return {};
  }

  cuda::device& on_;
  linear_description what_;
  bool relu_;
  activation_array narrow_weights_;
  const void* weights_ = nullptr; ///< of this pass
};

/// The passes of a convolution with weights as PyTorch has them, floats with channels before the
/// kernel; the device wants what activations are, channels innermost.
class convolution_passes {
public:
  convolution_passes(cuda::device& on, const convolution_geometry& geometry)
      : on_{on}
      , geometry_{geometry}
      , weights_{on}
      , gradient_{on} {}

  /// Of the pass that follows. `with_gradient`: backward_weights() will be asked for.
  result<void> begin(std::span<const float> weights, bool with_gradient) {
    w_ = weights.data();
    if (!is_moved() && !stores_less(on_)) return {};
    if (auto room = weights_.resize(weights.size()); !room) return room;
    if (with_gradient)
      if (auto room = gradient_.resize(weights.size()); !room) return room;
    w_ = weights_.data();
    if (is_moved())
      on_.run(lane::compute, cuda::transpose_narrowing{geometry_.out_channels, geometry_.in_channels, taps(),
                                                       weights.data(), weights_.data()});
    else
      on_.run(lane::compute, cuda::narrow{weights.data(), weights_.data(), weight_count()});
    return {};
  }
  void forward(std::int64_t batch, const void* x, void* y) {
    run(cuda::convolution::pass::forward, batch, x, w_, y);
  }
  void backward_data(std::int64_t batch, const void* dy, void* dx) {
    run(cuda::convolution::pass::backward_data, batch, dx, w_, dy);
  }
  void backward_weights(std::int64_t batch, const void* x, const void* dy, float* dw) {
    const auto which = cuda::convolution::pass::backward_weights;
    if (!is_moved() && !stores_less(on_)) return run(which, batch, x, dw, dy);
    run(which, batch, x, gradient_.data(), dy);
    if (is_moved())
      on_.run(lane::compute, cuda::transpose_widening{geometry_.out_channels, taps(), geometry_.in_channels,
                                                      gradient_.data(), dw});
    else
      on_.run(lane::compute, cuda::widen{gradient_.data(), dw, weight_count()});
  }

private:
  std::int64_t taps() const { return geometry_.kernel_height() * geometry_.kernel; }
  std::int64_t weight_count() const { return geometry_.out_channels * geometry_.in_channels * taps(); }
  bool is_moved() const { return taps() > 1 && geometry_.in_channels > 1; }
  /// One of the three is written, which the caller may; the others are only read.
  void run(cuda::convolution::pass which, std::int64_t batch, const void* x, const void* w, const void* y) {
    on_.run(lane::compute, cuda::convolution{which, geometry_, batch, const_cast<void*>(x),
                                             const_cast<void*>(w), const_cast<void*>(y)});
  }

  cuda::device& on_;
  convolution_geometry geometry_;
  const void* w_ = nullptr; ///< of this pass
  activation_array weights_, gradient_;
};

class convolution_operation final : public backend_operation {
public:
  convolution_operation(cuda::device& on, const convolution_geometry& geometry)
      : on_{on}
      , geometry_{geometry}
      , passes_{on, geometry} {}

  result<void> forward(const pass& now, std::span<const activations> inputs, activations output) override {
    if (auto begun = passes_.begin(now.tensors[0], !now.gradients.empty()); !begun) return begun;
    passes_.forward(now.batch, inputs[0].data(), output.data());
    if (geometry_.bias)
      on_.run(lane::compute,
              cuda::add_row{pixels(now), geometry_.out_channels, now.tensors[1].data(), output.data()});
    return {};
  }

  void backward(const pass& now, std::span<const activations> inputs, activations,
                activations output_gradient, std::span<const activations> input_gradients) override {
    passes_.backward_weights(now.batch, inputs[0].data(), output_gradient.data(), now.gradients[0].data());
    if (geometry_.bias)
      on_.run(lane::compute, cuda::sum_columns{pixels(now), geometry_.out_channels, output_gradient.data(),
                                               now.gradients[1].data()});
    if (!input_gradients[0].empty())
      passes_.backward_data(now.batch, output_gradient.data(), input_gradients[0].data());
  }

  memory_use memory() const override { return {.output_on_way_back = false}; }

private:
  std::int64_t pixels(const pass& now) const {
    return now.batch * geometry_.out_height * geometry_.out_width;
  }

  cuda::device& on_;
  convolution_geometry geometry_;
  convolution_passes passes_;
};

/// Its forward pass is the way back of the mirrored convolution, and the other way round.
class transposed_convolution_operation final : public backend_operation {
public:
  transposed_convolution_operation(cuda::device& on, const transposed_convolution_description& what)
      : on_{on}
      , what_{what}
      , passes_{on, what.mirrored} {}

  result<void> forward(const pass& now, std::span<const activations> inputs, activations output) override {
    if (auto begun = passes_.begin(now.tensors[0], !now.gradients.empty()); !begun) return begun;
    passes_.backward_data(now.batch, inputs[0].data(), output.data());
    if (what_.bias)
      on_.run(lane::compute,
              cuda::add_row{pixels(now), what_.mirrored.in_channels, now.tensors[1].data(), output.data()});
    return {};
  }

  void backward(const pass& now, std::span<const activations> inputs, activations,
                activations output_gradient, std::span<const activations> input_gradients) override {
    passes_.backward_weights(now.batch, output_gradient.data(), inputs[0].data(), now.gradients[0].data());
    if (what_.bias)
      on_.run(lane::compute, cuda::sum_columns{pixels(now), what_.mirrored.in_channels,
                                               output_gradient.data(), now.gradients[1].data()});
    if (!input_gradients[0].empty())
      passes_.forward(now.batch, output_gradient.data(), input_gradients[0].data());
  }

  memory_use memory() const override { return {.output_on_way_back = false}; }

private:
  std::int64_t pixels(const pass& now) const {
    return now.batch * what_.mirrored.height * what_.mirrored.width;
  }

  cuda::device& on_;
  transposed_convolution_description what_;
  convolution_passes passes_;
};

} // namespace

device_operation make_device_linear(cuda::device& device, const linear_description& what, bool relu) {
  return {std::make_unique<linear_operation>(device, what, relu)};
}

device_operation make_device_convolution(cuda::device& device, const convolution_description& what) {
  return {std::make_unique<convolution_operation>(device, what.geometry)};
}

device_operation make_device_transposed_convolution(cuda::device& device,
                                                    const transposed_convolution_description& what) {
  return {std::make_unique<transposed_convolution_operation>(device, what)};
}

} // namespace dlrun::engine
