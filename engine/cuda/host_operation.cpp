#include "engine/cuda/device_array.hpp"
#include "engine/cuda/device_operations.hpp"

#include <algorithm>
#include <vector>

namespace dlrun::engine {
namespace {

namespace cuda = kernels::cuda;
using cuda::lane;

/// Computes on the processor what the device does not know: what it reads is copied to the host,
/// what it writes back to the device.
class host_operation final : public operation {
public:
  host_operation(cuda::device& on, std::unique_ptr<operation> inner)
      : on_{on}
      , inner_{std::move(inner)} {}

  result<void> forward(const pass& now, std::span<const std::span<const float>> inputs,
                       std::span<float> output) override {
    bring(inputs, inputs_, input_views_);
    bring(now.tensors, tensors_, tensor_views_);
    gradients_.resize(now.gradients.size());
    gradient_views_.clear();
    for (std::size_t i = 0; i < gradients_.size(); ++i) {
      gradients_[i].resize(now.gradients[i].size());
      gradient_views_.emplace_back(gradients_[i]);
    }
    output_.resize(output.size());
    if (auto there = on_.finish(lane::compute); !there) return there;
    if (auto done = inner_->forward(on_host(now), input_views_, output_); !done) return done;
    send(output_, output);
    return {};
  }

  /// When the device fails here, the end of the pass says so.
  void backward(const pass& now, std::span<const std::span<const float>>, std::span<const float>,
                std::span<const float> output_gradient,
                std::span<const std::span<float>> input_gradients) override {
    output_gradient_.resize(output_gradient.size());
    on_.download(lane::compute, output_gradient.data(), output_gradient_.data(),
                 output_gradient.size_bytes());
    if (!on_.finish(lane::compute)) return;
    input_gradients_.resize(input_gradients.size());
    std::vector<std::span<float>> wanted;
    for (std::size_t i = 0; i < input_gradients.size(); ++i) {
      input_gradients_[i].resize(input_gradients[i].size());
      wanted.emplace_back(input_gradients_[i]);
    }
    inner_->backward(on_host(now), input_views_, output_, output_gradient_, wanted);
    for (std::size_t i = 0; i < wanted.size(); ++i) send(wanted[i], input_gradients[i]);
    for (std::size_t i = 0; i < gradients_.size(); ++i) send(gradients_[i], now.gradients[i]);
  }

  /// The host keeps its own of all.
  memory_use memory() const override { return {.inputs_on_way_back = false, .output_on_way_back = false}; }

private:
  void bring(std::span<const std::span<const float>> from, std::vector<std::vector<float>>& to,
             std::vector<std::span<const float>>& views) {
    to.resize(from.size());
    views.clear();
    for (std::size_t i = 0; i < from.size(); ++i) {
      to[i].resize(from[i].size());
      on_.download(lane::compute, from[i].data(), to[i].data(), from[i].size_bytes());
      views.emplace_back(to[i]);
    }
  }
  void send(std::span<const float> from, std::span<float> to) {
    if (!from.empty()) on_.upload(lane::compute, from.data(), to.data(), from.size_bytes());
  }
  pass on_host(const pass& now) const {
    pass here = now;
    here.tensors = tensor_views_;
    here.gradients = gradient_views_;
    return here;
  }

  cuda::device& on_;
  std::unique_ptr<operation> inner_;
  std::vector<std::vector<float>> inputs_, tensors_, gradients_, input_gradients_;
  std::vector<float> output_, output_gradient_;
  std::vector<std::span<const float>> input_views_, tensor_views_;
  std::vector<std::span<float>> gradient_views_;
};

} // namespace

device_operation make_host_operation(cuda::device& device, std::unique_ptr<operation> inner) {
  return {std::make_unique<host_operation>(device, std::move(inner)), nullptr, true};
}

} // namespace dlrun::engine
