#include "engine/cpu_backend.hpp"

#include "engine/compute_threads.hpp"
#include "kernels/cpu/permute.hpp"
#include "kernels/cpu/reduce.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <vector>

namespace dlrun::engine {

namespace {

/// An operation of the processor, whose activations are floats.
class float_operation final : public backend_operation {
public:
  explicit float_operation(std::unique_ptr<operation> inner)
      : inner_{std::move(inner)} {}

  result<void> forward(const pass& now, std::span<const activations> inputs, activations output) override {
    view(inputs, inputs_);
    return inner_->forward(now, inputs_, output.floats());
  }

  void backward(const pass& now, std::span<const activations> inputs, activations output,
                activations output_gradient, std::span<const activations> input_gradients) override {
    view(inputs, inputs_);
    view(input_gradients, gradients_);
    inner_->backward(now, inputs_, output.floats(), output_gradient.floats(), gradients_);
  }

  memory_use memory() const override { return inner_->memory(); }

private:
  template <class Span>
  static void view(std::span<const activations> from, std::vector<Span>& to) {
    to.clear();
    for (const auto& one : from) to.push_back(one.floats());
  }

  std::unique_ptr<operation> inner_;
  std::vector<std::span<const float>> inputs_; ///< of one call
  std::vector<std::span<float>> gradients_;    ///< of one call
};

std::unique_ptr<backend_operation> over_floats(std::unique_ptr<operation> inner) {
  return inner == nullptr ? nullptr : std::make_unique<float_operation>(std::move(inner));
}

} // namespace

cpu_backend::cpu_backend(std::shared_ptr<const model> model, int threads)
    : model_{std::move(model)}
    , threads_{threads} {
  DLRUN_CHECK(threads >= 1, "a network needs a thread, not {}", threads);
}

std::unique_ptr<backend_operation> cpu_backend::make_operation(const layer& layer, bool input_gradient) {
  return over_floats(layer.make_operation(context_, input_gradient));
}

std::unique_ptr<backend_operation> cpu_backend::make_joined_operation(const layer& last,
                                                                      std::span<const layer* const> before,
                                                                      bool input_gradient) {
  return over_floats(last.make_joined_operation(before, context_, input_gradient));
}

result<activations> cpu_backend::begin(std::size_t numbers) {
  use_threads(threads_);
  return activations{buffer_.resize(static_cast<std::int64_t>(numbers))};
}

result<activations> cpu_backend::bring(std::span<const float> records) { return activations{records}; }

result<void> cpu_backend::bring_transposed(std::int64_t batch, std::int64_t rows, std::int64_t columns,
                                           std::span<const float> records, activations to) {
  kernels::cpu::transpose(batch, rows, columns, records, to.floats());
  return {};
}

void cpu_backend::add(activations part, activations sum) {
  kernels::cpu::add(sum.floats(), part.floats(), sum.floats());
}

void cpu_backend::clear(std::span<float> floats) { std::ranges::fill(floats, 0.0F); }

result<void> cpu_backend::loss(activations outputs, const batch& batch, activations gradient,
                               std::span<float> metrics) {
  std::ranges::fill(metrics, 0.0F);
  metrics[parameter_layout::loss_sum] =
      static_cast<float>(model_->loss().forward(outputs.floats(), batch, gradient.floats()));
  metrics[parameter_layout::records] = static_cast<float>(batch.size);
  model_->metrics().add(outputs.floats(), batch,
                        metrics.subspan(parameter_layout::first_metric, model_->metrics().floats()));
  return {};
}

result<void> cpu_backend::fetch(activations from, std::span<float> to) {
  std::ranges::copy(from.floats(), to.begin());
  return {};
}

void cpu_backend::reached(std::uint64_t first_final, const progress& tell) { tell(first_final); }

result<void> cpu_backend::finish(const progress&) { return {}; }

} // namespace dlrun::engine
