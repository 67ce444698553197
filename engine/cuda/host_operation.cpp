#include "engine/cuda/device_array.hpp"
#include "engine/cuda/device_operations.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

namespace dlrun::engine {
namespace {

namespace cuda = kernels::cuda;
using cuda::lane;

/// Computes on the processor what the device does not know: what it reads is copied to the host,
/// what it writes back to the device. Before and after, the device has done all that it was asked
/// for, so that the time is that of the layer and its copies alone.
class host_operation final : public backend_operation {
public:
  host_operation(cuda::device& on, std::unique_ptr<operation> inner, host_watch& watch)
      : on_{on}
      , watch_{watch}
      , inner_{std::move(inner)}
      , between_{on} {}

  result<void> forward(const pass& now, std::span<const activations> inputs, activations output) override {
    if (auto room = make_room(inputs, output); !room) return room;
    if (auto before = on_.finish(lane::compute); !before) return before;
    const host_watch::lap measured{watch_};
    bring_all(now, inputs);
    output_.resize(output.size());
    if (auto there = on_.finish(lane::compute); !there) return there;
    if (auto done = inner_->forward(on_host(now), input_views_, output_); !done) return done;
    send(output_, output);
    return on_.finish(lane::compute);
  }

  /// When the device fails here, the end of the pass says so.
  void backward(const pass& now, std::span<const activations>, activations, activations output_gradient,
                std::span<const activations> input_gradients) override {
    if (!on_.finish(lane::compute)) return;
    const host_watch::lap measured{watch_};
    bring(output_gradient, output_gradient_);
    if (!on_.finish(lane::compute)) return;
    input_gradients_.resize(input_gradients.size());
    std::vector<std::span<float>> wanted;
    for (std::size_t i = 0; i < input_gradients.size(); ++i) {
      input_gradients_[i].resize(input_gradients[i].size());
      wanted.emplace_back(input_gradients_[i]);
    }
    inner_->backward(on_host(now), input_views_, output_, output_gradient_, wanted);
    for (std::size_t i = 0; i < wanted.size(); ++i) send(wanted[i], input_gradients[i]);
    for (std::size_t i = 0; i < gradients_.size(); ++i)
      on_.upload(lane::compute, gradients_[i].data(), now.gradients[i].data(), now.gradients[i].size_bytes());
    std::ignore = on_.finish(lane::compute);
  }

  /// The host keeps its own of all.
  memory_use memory() const override { return {.inputs_on_way_back = false, .output_on_way_back = false}; }

private:
  void bring_all(const pass& now, std::span<const activations> inputs) {
    inputs_.resize(inputs.size());
    input_views_.clear();
    for (std::size_t i = 0; i < inputs.size(); ++i) input_views_.emplace_back(bring(inputs[i], inputs_[i]));
    tensors_.resize(now.tensors.size());
    tensor_views_.clear();
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      tensor_views_.emplace_back(bring_floats(now.tensors[i], tensors_[i]));
    gradients_.resize(now.gradients.size());
    gradient_views_.clear();
    for (std::size_t i = 0; i < gradients_.size(); ++i) {
      gradients_[i].resize(now.gradients[i].size());
      gradient_views_.emplace_back(gradients_[i]);
    }
  }
  /// For activations as floats, one after another, where they are not floats.
  result<void> make_room(std::span<const activations> inputs, activations output) {
    if (!stores_less(on_)) return {};
    std::size_t largest = output.size();
    for (const auto& input : inputs) largest = std::max(largest, input.size());
    return between_.resize(largest);
  }
  std::span<const float> bring_floats(std::span<const float> from, std::vector<float>& to) {
    to.resize(from.size());
    on_.download(lane::compute, from.data(), to.data(), from.size_bytes());
    return to;
  }
  std::span<const float> bring(activations from, std::vector<float>& to) {
    if (!stores_less(on_)) return bring_floats(from.floats(), to);
    on_.run(lane::compute, cuda::widen{from.data(), between_.data(), number_count(from)});
    return bring_floats({between_.data(), from.size()}, to);
  }
  void send(std::span<const float> from, activations to) {
    if (from.empty()) return;
    const bool narrows = stores_less(on_);
    on_.upload(lane::compute, from.data(), narrows ? between_.data() : to.data(), from.size_bytes());
    if (narrows) on_.run(lane::compute, cuda::narrow{between_.data(), to.data(), number_count(to)});
  }
  pass on_host(const pass& now) const {
    pass here = now;
    here.tensors = tensor_views_;
    here.gradients = gradient_views_;
    return here;
  }

  cuda::device& on_;
  host_watch& watch_;
  std::unique_ptr<operation> inner_;
  device_array<float> between_;
  std::vector<std::vector<float>> inputs_, tensors_, gradients_, input_gradients_;
  std::vector<float> output_, output_gradient_;
  std::vector<std::span<const float>> input_views_, tensor_views_;
  std::vector<std::span<float>> gradient_views_;
};

} // namespace

device_operation make_host_operation(cuda::device& device, std::unique_ptr<operation> inner,
                                     host_watch& watch) {
  return {std::make_unique<host_operation>(device, std::move(inner), watch), nullptr, true};
}

} // namespace dlrun::engine
