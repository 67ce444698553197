// Layers that move values: flatten and reshape, concat, select.
#include "engine/cuda/device_array.hpp"
#include "engine/cuda/device_operations.hpp"
#include "engine/cuda/device_order.hpp"

namespace dlrun::engine {
namespace {

namespace cuda = kernels::cuda;
using cuda::lane;
using kernels::cpu::column_run;

/// Values keep the order that they have with channels first, which activations do not have.
class reshape_operation final : public backend_operation {
public:
  reshape_operation(cuda::device& on, const shape& input, const shape& output)
      : on_{on}
      , input_{input}
      , output_{output}
      , ordered_{on} {}

  result<void> forward(const pass& now, std::span<const activations> inputs, activations output) override {
    if (!input_.same() && !output_.same())
      if (auto room = ordered_.resize(output.size()); !room) return room;
    move(now.batch, inputs[0], input_, output_, output);
    return {};
  }

  void backward(const pass& now, std::span<const activations>, activations, activations output_gradient,
                std::span<const activations> input_gradients) override {
    if (!input_gradients[0].empty()) move(now.batch, output_gradient, output_, input_, input_gradients[0]);
  }

  memory_use memory() const override { return {.inputs_on_way_back = false, .output_on_way_back = false}; }

private:
  void move(std::int64_t batch, activations from, const device_order& before, const device_order& after,
            activations to) {
    if (before.same() && after.same())
      return on_.run(lane::compute, cuda::copy_activations{from.data(), to.data(), number_count(to)});
    if (before.same()) return after.to_last(on_, batch, from.data(), to.data());
    if (after.same()) return before.to_first(on_, batch, from.data(), to.data());
    before.to_first(on_, batch, from.data(), ordered_.data());
    after.to_last(on_, batch, ordered_.data(), to.data());
  }

  cuda::device& on_;
  device_order input_, output_;
  activation_array ordered_;
};

/// Channels are innermost, so that joining them is joining the rows of matrices, a row a pixel.
class concat_operation final : public backend_operation {
public:
  concat_operation(cuda::device& on, const concat_description& what)
      : on_{on}
      , runs_{what.runs} {}

  result<void> forward(const pass&, std::span<const activations> inputs, activations output) override {
    for (std::size_t i = 0; i < runs_.size(); ++i)
      on_.run(lane::compute, cuda::write_columns{rows(output), runs_[i], inputs[i].data(), output.data()});
    return {};
  }

  void backward(const pass&, std::span<const activations>, activations, activations output_gradient,
                std::span<const activations> input_gradients) override {
    for (std::size_t i = 0; i < runs_.size(); ++i)
      if (!input_gradients[i].empty())
        on_.run(lane::compute, cuda::read_columns{rows(output_gradient), runs_[i], output_gradient.data(),
                                                  input_gradients[i].data()});
  }

  memory_use memory() const override { return {.inputs_on_way_back = false, .output_on_way_back = false}; }

private:
  std::int64_t rows(activations joined) const { return number_count(joined) / runs_[0].width; }

  cuda::device& on_;
  std::vector<column_run> runs_;
};

class select_operation final : public backend_operation {
public:
  select_operation(cuda::device& on, const column_run& run)
      : on_{on}
      , run_{run} {}

  result<void> forward(const pass&, std::span<const activations> inputs, activations output) override {
    on_.run(lane::compute,
            cuda::read_columns{number_count(output) / run_.count, run_, inputs[0].data(), output.data()});
    return {};
  }

  void backward(const pass&, std::span<const activations>, activations, activations output_gradient,
                std::span<const activations> input_gradients) override {
    const auto gradient = input_gradients[0];
    if (gradient.empty()) return;
    on_.run(lane::compute, cuda::clear_activations{gradient.data(), number_count(gradient)});
    on_.run(lane::compute, cuda::write_columns{number_count(output_gradient) / run_.count, run_,
                                               output_gradient.data(), gradient.data()});
  }

  memory_use memory() const override { return {.inputs_on_way_back = false, .output_on_way_back = false}; }

private:
  cuda::device& on_;
  column_run run_;
};

} // namespace

device_operation make_device_reshape(cuda::device& device, const shape& input, const shape& output) {
  return {std::make_unique<reshape_operation>(device, input, output)};
}

device_operation make_device_concat(cuda::device& device, const concat_description& what) {
  return {std::make_unique<concat_operation>(device, what)};
}

device_operation make_device_select(cuda::device& device, const select_description& what) {
  return {std::make_unique<select_operation>(device, what.run)};
}

} // namespace dlrun::engine
