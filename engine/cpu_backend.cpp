#include "engine/cpu_backend.hpp"

#include "engine/compute_threads.hpp"
#include "kernels/cpu/permute.hpp"
#include "kernels/cpu/reduce.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::engine {

cpu_backend::cpu_backend(std::shared_ptr<const model> model, int threads)
    : model_{std::move(model)}
    , threads_{threads} {
  DLRUN_CHECK(threads >= 1, "a network needs a thread, not {}", threads);
}

std::unique_ptr<operation> cpu_backend::make_operation(const layer& layer, bool input_gradient) {
  return layer.make_operation(context_, input_gradient);
}

std::unique_ptr<operation> cpu_backend::make_joined_operation(const layer& last,
                                                              std::span<const layer* const> before,
                                                              bool input_gradient) {
  return last.make_joined_operation(before, context_, input_gradient);
}

result<std::span<float>> cpu_backend::begin(std::size_t floats) {
  use_threads(threads_);
  return buffer_.resize(static_cast<std::int64_t>(floats));
}

result<std::span<const float>> cpu_backend::bring(std::span<const float> records) { return records; }

void cpu_backend::transpose(std::int64_t batch, std::int64_t rows, std::int64_t columns,
                            std::span<const float> from, std::span<float> to) {
  kernels::cpu::transpose(batch, rows, columns, from, to);
}

void cpu_backend::add(std::span<const float> part, std::span<float> sum) {
  kernels::cpu::add(sum, part, sum);
}

void cpu_backend::clear(std::span<float> floats) { std::ranges::fill(floats, 0.0F); }

result<void> cpu_backend::loss(std::span<const float> outputs, const batch& batch, std::span<float> gradient,
                               std::span<float> metrics) {
  std::ranges::fill(metrics, 0.0F);
  metrics[parameter_layout::loss_sum] = static_cast<float>(model_->loss().forward(outputs, batch, gradient));
  metrics[parameter_layout::records] = static_cast<float>(batch.size);
  model_->metrics().add(outputs, batch,
                        metrics.subspan(parameter_layout::first_metric, model_->metrics().floats()));
  return {};
}

result<void> cpu_backend::fetch(std::span<const float> from, std::span<float> to) {
  std::ranges::copy(from, to.begin());
  return {};
}

void cpu_backend::reached(std::uint64_t first_final, const progress& tell) { tell(first_final); }

result<void> cpu_backend::finish(const progress&) { return {}; }

} // namespace dlrun::engine
