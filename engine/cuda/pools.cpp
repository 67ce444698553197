// Maximum and mean over windows of images.
#include "engine/cuda/device_array.hpp"
#include "engine/cuda/device_operations.hpp"

namespace dlrun::engine {
namespace {

namespace cuda = kernels::cuda;
using cuda::lane;
using kernels::cpu::axis_window;

class max_pool_operation final : public backend_operation {
public:
  max_pool_operation(cuda::device& on, const max_pool_description& what)
      : on_{on}
      , what_{what}
      , winner_{on} {}

  result<void> forward(const pass& now, std::span<const activations> inputs, activations output) override {
    if (auto room = winner_.resize(output.size()); !room) return room;
    on_.run(lane::compute, cuda::max_pool_forward{what_.geometry, now.batch, inputs[0].data(), output.data(),
                                                  winner_.data()});
    return {};
  }

  void backward(const pass& now, std::span<const activations>, activations, activations output_gradient,
                std::span<const activations> input_gradients) override {
    if (!input_gradients[0].empty())
      on_.run(lane::compute, cuda::max_pool_backward{what_.geometry, now.batch, winner_.data(),
                                                     output_gradient.data(), input_gradients[0].data()});
  }

  memory_use memory() const override { return {.inputs_on_way_back = false, .output_on_way_back = false}; }

private:
  cuda::device& on_;
  max_pool_description what_;
  device_array<std::int32_t> winner_;
};

class average_pool_operation final : public backend_operation {
public:
  average_pool_operation(cuda::device& on, const average_pool_description& what)
      : on_{on}
      , what_{what}
      , rows_{on}
      , columns_{on} {}

  result<void> forward(const pass& now, std::span<const activations> inputs, activations output) override {
    if (auto there = bring_windows(); !there) return there;
    on_.run(lane::compute, cuda::average_pool_forward{windows(), now.batch, inputs[0].data(), output.data()});
    return {};
  }

  void backward(const pass& now, std::span<const activations>, activations, activations output_gradient,
                std::span<const activations> input_gradients) override {
    if (!input_gradients[0].empty())
      on_.run(lane::compute, cuda::average_pool_backward{windows(), now.batch, output_gradient.data(),
                                                         input_gradients[0].data()});
  }

  memory_use memory() const override { return {.inputs_on_way_back = false, .output_on_way_back = false}; }

private:
  /// Once.
  result<void> bring_windows() {
    if (rows_.data() != nullptr && columns_.data() != nullptr) return {};
    if (auto there = bring(what_.geometry.rows, rows_); !there) return there;
    return bring(what_.geometry.columns, columns_);
  }
  result<void> bring(const std::vector<axis_window>& windows, device_array<axis_window>& to) {
    if (auto room = to.resize(windows.size()); !room) return room;
    on_.upload(lane::compute, windows.data(), to.data(), windows.size() * sizeof(axis_window));
    return {};
  }
  cuda::pool_windows windows() const {
    const auto& g = what_.geometry;
    return {g.channels,
            g.height,
            g.width,
            rows_.data(),
            columns_.data(),
            static_cast<std::int64_t>(g.rows.size()),
            static_cast<std::int64_t>(g.columns.size())};
  }

  cuda::device& on_;
  average_pool_description what_;
  device_array<axis_window> rows_, columns_;
};

} // namespace

device_operation make_device_pool(cuda::device& device, const max_pool_description& what) {
  return {std::make_unique<max_pool_operation>(device, what)};
}

device_operation make_device_pool(cuda::device& device, const average_pool_description& what) {
  return {std::make_unique<average_pool_operation>(device, what)};
}

} // namespace dlrun::engine
