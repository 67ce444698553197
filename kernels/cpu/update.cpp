#include "kernels/cpu/update.hpp"

#include <cmath>
#include <dlrun/check.hpp>

namespace dlrun::kernels::cpu {
namespace {

template <class... Spans>
void check_sizes(std::size_t size, const Spans&... spans) {
  DLRUN_CHECK(((spans.size() == size) && ...), "all spans of an update must have {} floats", size);
}

} // namespace

void sgd(float lr, float scale, std::span<const float> gradient_sum, std::span<const float> in,
         std::span<float> out) {
  check_sizes(out.size(), gradient_sum, in);
  const float* const g = gradient_sum.data();
  const float* const p = in.data();
  float* const q = out.data();
#pragma GCC ivdep // each element on its own: spans are disjoint or the same
  for (std::size_t i = 0; i < out.size(); ++i) q[i] = p[i] - lr * (g[i] * scale);
}

void sgd_momentum(float lr, float momentum, float scale, std::span<const float> gradient_sum,
                  std::span<const float> in, std::span<float> out, std::span<float> velocity) {
  check_sizes(out.size(), gradient_sum, in, velocity);
  const float* const g = gradient_sum.data();
  const float* const p = in.data();
  float* const q = out.data();
  float* const v = velocity.data();
#pragma GCC ivdep // each element on its own: spans are disjoint or the same
  for (std::size_t i = 0; i < out.size(); ++i) {
    const float next = momentum * v[i] + g[i] * scale;
    v[i] = next;
    q[i] = p[i] - lr * next;
  }
}

void adam(const adam_step& step, float scale, std::span<const float> gradient_sum, std::span<const float> in,
          std::span<float> out, std::span<float> m, std::span<float> v) {
  check_sizes(out.size(), gradient_sum, in, m, v);
  const adam_step s = step; // a copy: the stores below could alias the reference and stop vectorisation
  const float* const g = gradient_sum.data();
  const float* const p = in.data();
  float* const q = out.data();
  float* const first = m.data();
  float* const second = v.data();
#pragma GCC ivdep // each element on its own: spans are disjoint or the same
  for (std::size_t i = 0; i < out.size(); ++i) {
    const float gradient = g[i] * scale;
    const float mean = s.beta1 * first[i] + s.one_minus_beta1 * gradient;
    const float square = s.beta2 * second[i] + s.one_minus_beta2 * (gradient * gradient);
    first[i] = mean;
    second[i] = square;
    q[i] = p[i] - s.step_size * (mean / (std::sqrt(square) / s.sqrt_bias_correction2 + s.eps));
  }
}

void running_statistic(float momentum, float scale, std::span<const float> statistic_sum,
                       std::span<const float> in, std::span<float> out) {
  check_sizes(out.size(), statistic_sum, in);
  const float keep = 1.0F - momentum;
  const float* const s = statistic_sum.data();
  const float* const r = in.data();
  float* const q = out.data();
#pragma GCC ivdep // each element on its own: spans are disjoint or the same
  for (std::size_t i = 0; i < out.size(); ++i) q[i] = keep * r[i] + momentum * (s[i] * scale);
}

} // namespace dlrun::kernels::cpu
