#include "kernels/cpu/update.hpp"

#include <cmath>
#include <cstddef>
#include <dlrun/check.hpp>
#include <variant>

namespace dlrun::kernels::cpu {
namespace {

template <class... Spans>
void check_sizes(std::size_t size, const Spans&... spans) {
  DLRUN_CHECK(((spans.size() == size) && ...), "all spans of an update must have {} floats", size);
}

/// State that a variant of a rule does without.
template <class... Spans>
void check_optional_sizes(std::size_t size, const Spans&... spans) {
  DLRUN_CHECK(((spans.empty() || spans.size() == size) && ...),
              "all spans of an update must have {} floats, or none", size);
}

/// A condition that the loop is compiled for, so that it has no branch and no work for what is not asked for.
using compiled_flag = std::variant<std::false_type, std::true_type>;
compiled_flag compiled(bool flag) {
  return flag ? compiled_flag{std::true_type{}} : compiled_flag{std::false_type{}};
}

/// What every loop reads and writes. By value into the loops: were it a reference, the stores could alias it
/// and stop vectorisation.
struct elements {
  gradient_terms terms;
  const float* sum;
  const float* in;
  float* out;
  std::size_t size;
};

float gradient_of(const gradient_terms& terms, float sum) {
  const float mean = sum * terms.scale;
  const float not_below = mean < -terms.limit ? -terms.limit : mean;
  return (not_below > terms.limit ? terms.limit : not_below) * terms.coefficient;
}

template <bool decays>
float decayed(float gradient, float weight_decay, float parameter) {
  if constexpr (decays)
    return gradient + weight_decay * parameter;
  else
    return gradient;
}

template <bool decays>
void sgd_loop(float lr, float weight_decay, elements e) {
#pragma GCC ivdep // each element on its own: spans are disjoint or the same
  for (std::size_t i = 0; i < e.size; ++i) {
    const float d = decayed<decays>(gradient_of(e.terms, e.sum[i]), weight_decay, e.in[i]);
    e.out[i] = e.in[i] - lr * d;
  }
}

template <bool decays, bool nesterov>
void momentum_loop(momentum_step s, elements e, float* v) {
#pragma GCC ivdep // each element on its own: spans are disjoint or the same
  for (std::size_t i = 0; i < e.size; ++i) {
    const float d = decayed<decays>(gradient_of(e.terms, e.sum[i]), s.weight_decay, e.in[i]);
    const float next = s.momentum * v[i] + s.gradient_weight * d;
    v[i] = next;
    e.out[i] = e.in[i] - s.lr * (nesterov ? d + s.momentum * next : next);
  }
}

template <bool decays, bool keeps, bool amsgrad>
void adam_loop(adam_step s, elements e, float* m, float* v, float* max_v) {
#pragma GCC ivdep // each element on its own: spans are disjoint or the same
  for (std::size_t i = 0; i < e.size; ++i) {
    const float d = decayed<decays>(gradient_of(e.terms, e.sum[i]), s.weight_decay, e.in[i]);
    const float mean = s.beta1 * m[i] + s.one_minus_beta1 * d;
    const float square = s.beta2 * v[i] + s.one_minus_beta2 * (d * d);
    m[i] = mean;
    v[i] = square;
    float divisor = square;
    if constexpr (amsgrad) {
      divisor = max_v[i] > square ? max_v[i] : square;
      max_v[i] = divisor;
    }
    const float parameter = keeps ? e.in[i] * s.keep : e.in[i];
    e.out[i] = parameter - s.step_size * (mean / (std::sqrt(divisor) / s.sqrt_bias_correction2 + s.eps));
  }
}

template <bool decays>
void adagrad_loop(adagrad_step s, elements e, float* accumulated) {
#pragma GCC ivdep // each element on its own: spans are disjoint or the same
  for (std::size_t i = 0; i < e.size; ++i) {
    const float d = decayed<decays>(gradient_of(e.terms, e.sum[i]), s.weight_decay, e.in[i]);
    const float next = accumulated[i] + d * d;
    accumulated[i] = next;
    e.out[i] = e.in[i] - s.lr * (d / (std::sqrt(next) + s.eps));
  }
}

template <bool decays, bool centered, bool moves>
void rmsprop_loop(rmsprop_step s, elements e, float* square, float* mean, float* velocity) {
#pragma GCC ivdep // each element on its own: spans are disjoint or the same
  for (std::size_t i = 0; i < e.size; ++i) {
    const float d = decayed<decays>(gradient_of(e.terms, e.sum[i]), s.weight_decay, e.in[i]);
    const float next_square = s.alpha * square[i] + s.one_minus_alpha * (d * d);
    square[i] = next_square;
    float variance = next_square;
    if constexpr (centered) {
      const float next_mean = s.alpha * mean[i] + s.one_minus_alpha * d;
      mean[i] = next_mean;
      variance = next_square - next_mean * next_mean;
      variance = variance < 0 ? 0 : variance;
    }
    float change = d / (std::sqrt(variance) + s.eps);
    if constexpr (moves) {
      change = s.momentum * velocity[i] + change;
      velocity[i] = change;
    }
    e.out[i] = e.in[i] - s.lr * change;
  }
}

} // namespace

double sum_of_squares(const gradient_terms& terms, std::span<const float> gradient_sum) {
  constexpr std::size_t lanes = 8;
  const gradient_terms t = terms;
  const float* const sum = gradient_sum.data();
  const std::size_t whole = gradient_sum.size() / lanes * lanes;
  double lane[lanes] = {};
  for (std::size_t i = 0; i < whole; i += lanes)
    for (std::size_t k = 0; k < lanes; ++k) {
      const double g = gradient_of(t, sum[i + k]);
      lane[k] += g * g;
    }
  for (std::size_t i = whole; i < gradient_sum.size(); ++i) {
    const double g = gradient_of(t, sum[i]);
    lane[i - whole] += g * g;
  }
  return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

void sgd(float lr, float weight_decay, const gradient_terms& terms, std::span<const float> gradient_sum,
         std::span<const float> in, std::span<float> out) {
  check_sizes(out.size(), gradient_sum, in);
  const elements e{terms, gradient_sum.data(), in.data(), out.data(), out.size()};
  std::visit([&](auto decays) { sgd_loop<decays()>(lr, weight_decay, e); }, compiled(weight_decay != 0));
}

void sgd_momentum(const momentum_step& step, const gradient_terms& terms, std::span<const float> gradient_sum,
                  std::span<const float> in, std::span<float> out, std::span<float> velocity) {
  check_sizes(out.size(), gradient_sum, in, velocity);
  const elements e{terms, gradient_sum.data(), in.data(), out.data(), out.size()};
  std::visit(
      [&](auto decays, auto nesterov) { momentum_loop<decays(), nesterov()>(step, e, velocity.data()); },
      compiled(step.weight_decay != 0), compiled(step.nesterov));
}

void adam(const adam_step& step, const gradient_terms& terms, std::span<const float> gradient_sum,
          std::span<const float> in, std::span<float> out, std::span<float> m, std::span<float> v,
          std::span<float> max_v) {
  check_sizes(out.size(), gradient_sum, in, m, v);
  check_optional_sizes(out.size(), max_v);
  const elements e{terms, gradient_sum.data(), in.data(), out.data(), out.size()};
  std::visit(
      [&](auto decays, auto keeps, auto amsgrad) {
        adam_loop<decays(), keeps(), amsgrad()>(step, e, m.data(), v.data(), max_v.data());
      },
      compiled(step.weight_decay != 0), compiled(step.keep != 1), compiled(!max_v.empty()));
}

void adagrad(const adagrad_step& step, const gradient_terms& terms, std::span<const float> gradient_sum,
             std::span<const float> in, std::span<float> out, std::span<float> sum) {
  check_sizes(out.size(), gradient_sum, in, sum);
  const elements e{terms, gradient_sum.data(), in.data(), out.data(), out.size()};
  std::visit([&](auto decays) { adagrad_loop<decays()>(step, e, sum.data()); },
             compiled(step.weight_decay != 0));
}

void rmsprop(const rmsprop_step& step, const gradient_terms& terms, std::span<const float> gradient_sum,
             std::span<const float> in, std::span<float> out, std::span<float> square, std::span<float> mean,
             std::span<float> velocity) {
  check_sizes(out.size(), gradient_sum, in, square);
  check_optional_sizes(out.size(), mean, velocity);
  const elements e{terms, gradient_sum.data(), in.data(), out.data(), out.size()};
  std::visit(
      [&](auto decays, auto centered, auto moves) {
        rmsprop_loop<decays(), centered(), moves()>(step, e, square.data(), mean.data(), velocity.data());
      },
      compiled(step.weight_decay != 0), compiled(!mean.empty()), compiled(!velocity.empty()));
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
