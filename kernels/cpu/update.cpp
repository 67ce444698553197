#include "kernels/cpu/update.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <dlrun/check.hpp>
#include <utility>
#include <variant>
#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace dlrun::kernels::cpu {
namespace {

bool has_size(std::span<const float> floats, std::size_t size) { return floats.size() == size; }
bool has_size(const update_state& state, std::size_t size) {
  return state.before.size() == size && state.after.size() == size;
}

template <class... Spans>
void check_sizes(std::size_t size, const Spans&... spans) {
  DLRUN_CHECK((has_size(spans, size) && ...), "all spans of an update must have {} floats", size);
}

/// State that a variant of a rule does without.
template <class... Spans>
void check_optional_sizes(std::size_t size, const Spans&... spans) {
  DLRUN_CHECK(((spans.empty() || has_size(spans, size)) && ...),
              "all spans of an update must have {} floats, or none", size);
}

/// A condition that the loop is compiled for, so that it has no branch and no work for what is not
/// asked for.
using compiled_flag = std::variant<std::false_type, std::true_type>;
compiled_flag compiled(bool flag) {
  return flag ? compiled_flag{std::true_type{}} : compiled_flag{std::false_type{}};
}

/// What every loop reads and writes. By value into the loops: were it a reference, the stores could
/// alias it and stop vectorisation.
struct elements {
  gradient_terms terms;
  const float* sum;
  const float* in;
  float* out;
  std::size_t size;
};

/// What is streamed is computed so many elements at a time into a part that stays in the L1 cache.
constexpr std::size_t streamed_part = 256;
constexpr std::size_t floats_of_line = 64 / sizeof(float);

std::size_t floats_to_line(const float* at) {
  return (floats_of_line - reinterpret_cast<std::uintptr_t>(at) / sizeof(float) % floats_of_line) %
         floats_of_line;
}

/// Both are aligned to lines.
void stream(const float* from, float* to, std::size_t size) {
  std::size_t i = 0;
#if defined(__AVX__)
  for (; i + floats_of_line <= size; i += floats_of_line) {
    _mm256_stream_ps(to + i, _mm256_load_ps(from + i));
    _mm256_stream_ps(to + i + floats_of_line / 2, _mm256_load_ps(from + i + floats_of_line / 2));
  }
#endif
  std::copy_n(from + i, size - i, to + i);
}

/// Streamed stores are not ordered with others: what follows must not be seen before them.
void end_of_streams() {
#if defined(__AVX__)
  _mm_sfence();
#endif
}

elements part_of(const elements& e, std::size_t begin, std::size_t size) {
  return {e.terms, e.sum + begin, e.in + begin, e.out + begin, size};
}

/// The larger of a magnitude and that of a value. Magnitudes are bit patterns without the sign,
/// which are ordered as the values are, with infinity and then NaN above all numbers: so a loop
/// that is written for its sums also tells, for two instructions a vector, what is not finite.
std::uint32_t larger_magnitude(std::uint32_t magnitude, float value) {
  constexpr std::uint32_t without_sign = 0x7fffffff;
  return std::max(magnitude, std::bit_cast<std::uint32_t>(value) & without_sign);
}

bool is_finite_magnitude(std::uint32_t magnitude) {
  constexpr std::uint32_t infinity = 0x7f800000;
  return magnitude < infinity;
}

/// `loop` takes the elements of a part and the number of its first one, and returns the largest
/// magnitude it wrote. @returns whether all that was written is finite.
template <class Loop>
bool for_parts(output_store store, const elements& e, Loop loop) {
  if (store == output_store::cached) return is_finite_magnitude(loop(e, std::size_t{0}));
  alignas(64) float results[streamed_part];
  std::size_t begin = std::min(floats_to_line(e.out), e.size);
  std::uint32_t largest = loop(part_of(e, 0, begin), std::size_t{0});
  while (begin < e.size) {
    auto part = part_of(e, begin, std::min(streamed_part, e.size - begin));
    const auto out = std::exchange(part.out, results);
    largest = std::max(largest, loop(part, begin));
    stream(results, out, part.size);
    begin += part.size;
  }
  end_of_streams();
  return is_finite_magnitude(largest);
}

/// A part of a plane of state. By value into the loops, as elements are.
struct plane {
  const float* before = nullptr;
  float* after = nullptr;
};

plane at(const update_state& state, std::size_t begin) {
  return state.empty() ? plane{} : plane{state.before.data() + begin, state.after.data() + begin};
}

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
std::uint32_t sgd_loop(float lr, float weight_decay, elements e) {
  std::uint32_t largest = 0;
#pragma GCC ivdep // each element on its own: spans are disjoint or the same
  for (std::size_t i = 0; i < e.size; ++i) {
    const float d = decayed<decays>(gradient_of(e.terms, e.sum[i]), weight_decay, e.in[i]);
    const float result = e.in[i] - lr * d;
    e.out[i] = result;
    largest = larger_magnitude(largest, result);
  }
  return largest;
}

template <bool decays, bool nesterov>
std::uint32_t momentum_loop(momentum_step s, elements e, plane v) {
  std::uint32_t largest = 0;
#pragma GCC ivdep // each element on its own: spans are disjoint or the same
  for (std::size_t i = 0; i < e.size; ++i) {
    const float d = decayed<decays>(gradient_of(e.terms, e.sum[i]), s.weight_decay, e.in[i]);
    const float next = s.momentum * v.before[i] + s.gradient_weight * d;
    v.after[i] = next;
    const float result = e.in[i] - s.lr * (nesterov ? d + s.momentum * next : next);
    e.out[i] = result;
    largest = larger_magnitude(largest, result);
  }
  return largest;
}

template <bool decays, bool keeps, bool amsgrad>
std::uint32_t adam_loop(adam_step s, elements e, plane m, plane v, plane max_v) {
  std::uint32_t largest = 0;
#pragma GCC ivdep // each element on its own: spans are disjoint or the same
  for (std::size_t i = 0; i < e.size; ++i) {
    const float d = decayed<decays>(gradient_of(e.terms, e.sum[i]), s.weight_decay, e.in[i]);
    const float mean = s.beta1 * m.before[i] + s.one_minus_beta1 * d;
    const float square = s.beta2 * v.before[i] + s.one_minus_beta2 * (d * d);
    m.after[i] = mean;
    v.after[i] = square;
    float divisor = square;
    if constexpr (amsgrad) {
      divisor = max_v.before[i] > square ? max_v.before[i] : square;
      max_v.after[i] = divisor;
    }
    const float parameter = keeps ? e.in[i] * s.keep : e.in[i];
    const float result =
        parameter - s.step_size * (mean / (std::sqrt(divisor) / s.sqrt_bias_correction2 + s.eps));
    e.out[i] = result;
    largest = larger_magnitude(largest, result);
  }
  return largest;
}

template <bool decays>
std::uint32_t adagrad_loop(adagrad_step s, elements e, plane accumulated) {
  std::uint32_t largest = 0;
#pragma GCC ivdep // each element on its own: spans are disjoint or the same
  for (std::size_t i = 0; i < e.size; ++i) {
    const float d = decayed<decays>(gradient_of(e.terms, e.sum[i]), s.weight_decay, e.in[i]);
    const float next = accumulated.before[i] + d * d;
    accumulated.after[i] = next;
    const float result = e.in[i] - s.lr * (d / (std::sqrt(next) + s.eps));
    e.out[i] = result;
    largest = larger_magnitude(largest, result);
  }
  return largest;
}

template <bool decays, bool centered, bool moves>
std::uint32_t rmsprop_loop(rmsprop_step s, elements e, plane square, plane mean, plane velocity) {
  std::uint32_t largest = 0;
#pragma GCC ivdep // each element on its own: spans are disjoint or the same
  for (std::size_t i = 0; i < e.size; ++i) {
    const float d = decayed<decays>(gradient_of(e.terms, e.sum[i]), s.weight_decay, e.in[i]);
    const float next_square = s.alpha * square.before[i] + s.one_minus_alpha * (d * d);
    square.after[i] = next_square;
    float variance = next_square;
    if constexpr (centered) {
      const float next_mean = s.alpha * mean.before[i] + s.one_minus_alpha * d;
      mean.after[i] = next_mean;
      variance = next_square - next_mean * next_mean;
      variance = variance < 0 ? 0 : variance;
    }
    float change = d / (std::sqrt(variance) + s.eps);
    if constexpr (moves) {
      change = s.momentum * velocity.before[i] + change;
      velocity.after[i] = change;
    }
    const float result = e.in[i] - s.lr * change;
    e.out[i] = result;
    largest = larger_magnitude(largest, result);
  }
  return largest;
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

bool sgd(float lr, float weight_decay, const gradient_terms& terms, std::span<const float> gradient_sum,
         std::span<const float> in, std::span<float> out, output_store store) {
  check_sizes(out.size(), gradient_sum, in);
  const elements e{terms, gradient_sum.data(), in.data(), out.data(), out.size()};
  return std::visit(
      [&](auto decays) {
        return for_parts(store, e, [&](const elements& part, std::size_t) {
          return sgd_loop<decays()>(lr, weight_decay, part);
        });
      },
      compiled(weight_decay != 0));
}

bool sgd_momentum(const momentum_step& step, const gradient_terms& terms, std::span<const float> gradient_sum,
                  std::span<const float> in, std::span<float> out, update_state velocity,
                  output_store store) {
  check_sizes(out.size(), gradient_sum, in, velocity);
  const elements e{terms, gradient_sum.data(), in.data(), out.data(), out.size()};
  return std::visit(
      [&](auto decays, auto nesterov) {
        return for_parts(store, e, [&](const elements& part, std::size_t begin) {
          return momentum_loop<decays(), nesterov()>(step, part, at(velocity, begin));
        });
      },
      compiled(step.weight_decay != 0), compiled(step.nesterov));
}

bool adam(const adam_step& step, const gradient_terms& terms, std::span<const float> gradient_sum,
          std::span<const float> in, std::span<float> out, update_state m, update_state v, update_state max_v,
          output_store store) {
  check_sizes(out.size(), gradient_sum, in, m, v);
  check_optional_sizes(out.size(), max_v);
  const elements e{terms, gradient_sum.data(), in.data(), out.data(), out.size()};
  return std::visit(
      [&](auto decays, auto keeps, auto amsgrad) {
        return for_parts(store, e, [&](const elements& part, std::size_t begin) {
          return adam_loop<decays(), keeps(), amsgrad()>(step, part, at(m, begin), at(v, begin),
                                                         at(max_v, begin));
        });
      },
      compiled(step.weight_decay != 0), compiled(step.keep != 1), compiled(!max_v.empty()));
}

bool adagrad(const adagrad_step& step, const gradient_terms& terms, std::span<const float> gradient_sum,
             std::span<const float> in, std::span<float> out, update_state sum, output_store store) {
  check_sizes(out.size(), gradient_sum, in, sum);
  const elements e{terms, gradient_sum.data(), in.data(), out.data(), out.size()};
  return std::visit(
      [&](auto decays) {
        return for_parts(store, e, [&](const elements& part, std::size_t begin) {
          return adagrad_loop<decays()>(step, part, at(sum, begin));
        });
      },
      compiled(step.weight_decay != 0));
}

bool rmsprop(const rmsprop_step& step, const gradient_terms& terms, std::span<const float> gradient_sum,
             std::span<const float> in, std::span<float> out, update_state square, update_state mean,
             update_state velocity, output_store store) {
  check_sizes(out.size(), gradient_sum, in, square);
  check_optional_sizes(out.size(), mean, velocity);
  const elements e{terms, gradient_sum.data(), in.data(), out.data(), out.size()};
  return std::visit(
      [&](auto decays, auto centered, auto moves) {
        return for_parts(store, e, [&](const elements& part, std::size_t begin) {
          return rmsprop_loop<decays(), centered(), moves()>(step, part, at(square, begin), at(mean, begin),
                                                             at(velocity, begin));
        });
      },
      compiled(step.weight_decay != 0), compiled(!mean.empty()), compiled(!velocity.empty()));
}

bool running_statistic(float momentum, float scale, std::span<const float> statistic_sum,
                       std::span<const float> in, std::span<float> out) {
  check_sizes(out.size(), statistic_sum, in);
  const float keep = 1.0F - momentum;
  const float* const s = statistic_sum.data();
  const float* const r = in.data();
  float* const q = out.data();
  std::uint32_t largest = 0;
#pragma GCC ivdep // each element on its own: spans are disjoint or the same
  for (std::size_t i = 0; i < out.size(); ++i) {
    const float result = keep * r[i] + momentum * (s[i] * scale);
    q[i] = result;
    largest = larger_magnitude(largest, result);
  }
  return is_finite_magnitude(largest);
}

} // namespace dlrun::kernels::cpu
