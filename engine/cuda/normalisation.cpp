// Layers that normalise, and softmax.
#include "engine/cuda/device_array.hpp"
#include "engine/cuda/device_operations.hpp"
#include "engine/cuda/device_order.hpp"

namespace dlrun::engine {
namespace {

namespace cuda = kernels::cuda;
using cuda::lane;
using kernels::cpu::group_geometry;

/// The floats of a tensor of an affine layer, or null.
const float* affine_tensor(const pass& now, bool affine, std::size_t number) {
  return affine ? now.tensors[number].data() : nullptr;
}
float* affine_gradient(const pass& now, bool affine, std::size_t number) {
  return affine ? now.gradients[number].data() : nullptr;
}

class batch_norm_operation final : public backend_operation {
public:
  batch_norm_operation(cuda::device& on, const batch_norm_description& what, std::int64_t channels)
      : on_{on}
      , what_{what}
      , channels_{channels}
      , mean_{on}
      , inverse_deviation_{on} {}

  result<void> forward(const pass& now, std::span<const activations> inputs, activations output) override {
    for (auto* const one : {&mean_, &inverse_deviation_})
      if (auto room = one->resize(static_cast<std::size_t>(channels_)); !room) return room;
    const std::size_t running = what_.affine ? 2 : 0;
    if (now.training) {
      on_.run(lane::compute,
              cuda::batch_statistics{rows(inputs[0]), channels_, what_.eps, inputs[0].data(), mean_.data(),
                                     now.gradients[running + 1].data(), inverse_deviation_.data()});
      on_.run(lane::compute, cuda::copy{mean_.data(), now.gradients[running].data(), channels_});
    } else {
      on_.run(lane::compute, cuda::copy{now.tensors[running].data(), mean_.data(), channels_});
      on_.run(lane::compute, cuda::inverse_deviation{channels_, what_.eps, now.tensors[running + 1].data(),
                                                     inverse_deviation_.data()});
    }
    on_.run(lane::compute,
            cuda::normalise{rows(inputs[0]), channels_, mean_.data(), inverse_deviation_.data(),
                            affine_tensor(now, what_.affine, 0), affine_tensor(now, what_.affine, 1),
                            inputs[0].data(), output.data()});
    return {};
  }

  void backward(const pass& now, std::span<const activations> inputs, activations,
                activations output_gradient, std::span<const activations> input_gradients) override {
    on_.run(lane::compute,
            cuda::batch_norm_backward{rows(inputs[0]), channels_, mean_.data(), inverse_deviation_.data(),
                                      affine_tensor(now, what_.affine, 0), inputs[0].data(),
                                      output_gradient.data(), affine_gradient(now, what_.affine, 0),
                                      affine_gradient(now, what_.affine, 1), input_gradients[0].data()});
  }

  memory_use memory() const override { return {.output_on_way_back = false}; }

private:
  /// Values of each channel: one a record, or one a pixel.
  std::int64_t rows(activations input) const { return static_cast<std::int64_t>(input.size()) / channels_; }

  cuda::device& on_;
  batch_norm_description what_;
  std::int64_t channels_;
  device_array<float> mean_, inverse_deviation_;
};

/// Groups of a record's channels, with the statistics of each.
class group_passes {
public:
  group_passes(cuda::device& on, const group_geometry& geometry, bool affine)
      : on_{on}
      , geometry_{geometry}
      , affine_{affine}
      , mean_{on}
      , inverse_deviation_{on} {}

  /// Of `records` records of the geometry.
  result<void> forward(const pass& now, std::int64_t records, const void* x, void* y) {
    for (auto* const one : {&mean_, &inverse_deviation_})
      if (auto room = one->resize(static_cast<std::size_t>(records * geometry_.groups)); !room) return room;
    on_.run(lane::compute, cuda::group_norm_forward{geometry_, records, x, affine_tensor(now, affine_, 0),
                                                    affine_tensor(now, affine_, 1), y, mean_.data(),
                                                    inverse_deviation_.data()});
    return {};
  }
  /// `dx` may be null.
  void backward(const pass& now, std::int64_t records, const void* x, const void* dy, void* dx) {
    on_.run(lane::compute,
            cuda::group_norm_backward{geometry_, records, x, mean_.data(), inverse_deviation_.data(),
                                      affine_tensor(now, affine_, 0), dy, affine_gradient(now, affine_, 0),
                                      affine_gradient(now, affine_, 1), dx});
  }

private:
  cuda::device& on_;
  group_geometry geometry_;
  bool affine_;
  device_array<float> mean_, inverse_deviation_;
};

class group_norm_operation final : public backend_operation {
public:
  group_norm_operation(cuda::device& on, const group_norm_description& what)
      : passes_{on, what.geometry, what.affine} {}

  result<void> forward(const pass& now, std::span<const activations> inputs, activations output) override {
    return passes_.forward(now, now.batch, inputs[0].data(), output.data());
  }

  void backward(const pass& now, std::span<const activations> inputs, activations,
                activations output_gradient, std::span<const activations> input_gradients) override {
    passes_.backward(now, now.batch, inputs[0].data(), output_gradient.data(), input_gradients[0].data());
  }

  memory_use memory() const override { return {.output_on_way_back = false}; }

private:
  group_passes passes_;
};

/// With channels first, the normalised dimensions are the innermost: a record is rows of `width`
/// values, each with its own statistics, and the weights are those of a row.
class layer_norm_operation final : public backend_operation {
public:
  layer_norm_operation(cuda::device& on, const layer_norm_description& what, const shape& record)
      : on_{on}
      , order_{record}
      , rows_{*element_count(record) / what.width}
      , passes_{on, {1, what.width, 1, what.eps}, what.affine}
      , input_{on}
      , gradient_{on}
      , result_{on} {}

  result<void> forward(const pass& now, std::span<const activations> inputs, activations output) override {
    if (order_.same()) return passes_.forward(now, now.batch * rows_, inputs[0].data(), output.data());
    for (auto* const one : {&input_, &gradient_, &result_})
      if (auto room = one->resize(output.size()); !room) return room;
    order_.to_first(on_, now.batch, inputs[0].data(), input_.data());
    if (auto done = passes_.forward(now, now.batch * rows_, input_.data(), result_.data()); !done)
      return done;
    order_.to_last(on_, now.batch, result_.data(), output.data());
    return {};
  }

  void backward(const pass& now, std::span<const activations> inputs, activations,
                activations output_gradient, std::span<const activations> input_gradients) override {
    void* const wanted = input_gradients[0].data();
    if (order_.same())
      return passes_.backward(now, now.batch * rows_, inputs[0].data(), output_gradient.data(), wanted);
    order_.to_first(on_, now.batch, output_gradient.data(), gradient_.data());
    passes_.backward(now, now.batch * rows_, input_.data(), gradient_.data(),
                     wanted == nullptr ? nullptr : result_.data());
    if (wanted != nullptr) order_.to_last(on_, now.batch, result_.data(), wanted);
  }

  memory_use memory() const override {
    return {.inputs_on_way_back = order_.same(), .output_on_way_back = false};
  }

private:
  cuda::device& on_;
  device_order order_;
  std::int64_t rows_; ///< of a record
  group_passes passes_;
  activation_array input_, gradient_, result_; ///< with channels first, where that differs
};

class softmax_operation final : public backend_operation {
public:
  softmax_operation(cuda::device& on, std::int64_t channels)
      : on_{on}
      , channels_{channels} {}

  result<void> forward(const pass&, std::span<const activations> inputs, activations output) override {
    on_.run(lane::compute, cuda::softmax_forward{rows(output), channels_, inputs[0].data(), output.data()});
    return {};
  }

  void backward(const pass&, std::span<const activations>, activations output, activations output_gradient,
                std::span<const activations> input_gradients) override {
    if (!input_gradients[0].empty())
      on_.run(lane::compute, cuda::softmax_backward{rows(output), channels_, output.data(),
                                                    output_gradient.data(), input_gradients[0].data()});
  }

  memory_use memory() const override { return {.inputs_on_way_back = false, .in_place = true}; }

private:
  std::int64_t rows(activations output) const { return static_cast<std::int64_t>(output.size()) / channels_; }

  cuda::device& on_;
  std::int64_t channels_;
};

} // namespace

device_operation make_device_batch_norm(cuda::device& device, const batch_norm_description& what,
                                        std::int64_t channels) {
  return {std::make_unique<batch_norm_operation>(device, what, channels)};
}

device_operation make_device_group_norm(cuda::device& device, const group_norm_description& what) {
  return {std::make_unique<group_norm_operation>(device, what)};
}

device_operation make_device_layer_norm(cuda::device& device, const layer_norm_description& what,
                                        const shape& record) {
  return {std::make_unique<layer_norm_operation>(device, what, record)};
}

device_operation make_device_softmax(cuda::device& device, std::int64_t channels) {
  return {std::make_unique<softmax_operation>(device, channels)};
}

} // namespace dlrun::engine
