#include "kernels/cuda/softmax.hpp"

#include "kernels/cuda/bf16.hpp"
#include "kernels/cuda/device.hpp"
#include "kernels/cuda/reduce.hpp"

#include <cmath>
#include <concepts>

namespace dlrun::kernels::cuda {
namespace {

template <class Number>
__global__ void __launch_bounds__(lanes_max) write_softmax(softmax_forward what, int lanes) {
  __shared__ double room[lanes_max];
  const team mine = row_team(lanes);
  each_row(what.rows, lanes, [&](std::int64_t row) {
    const std::int64_t width = row < what.rows ? what.width : 0;
    const Number* const in = static_cast<const Number*>(what.x) + row * what.width;
    Number* const out = static_cast<Number*>(what.y) + row * what.width;
    float max = -INFINITY;
    for (std::int64_t i = mine.lane; i < width; i += mine.lanes)
      max = max < widened(in[i]) ? widened(in[i]) : max;
    max = static_cast<float>(largest_value(room, mine, static_cast<double>(max)));
    // What the sum is of is kept in `out` where that does not round it, else computed again.
    constexpr bool keeps = std::same_as<Number, float>;
    const double sum = sum_terms(room, mine, width, [&](std::int64_t i) {
      const float power = std::exp(widened(in[i]) - max);
      if constexpr (keeps) out[i] = power;
      return static_cast<double>(power);
    });
    for (std::int64_t i = mine.lane; i < width; i += mine.lanes) {
      const float power = keeps ? widened(out[i]) : std::exp(widened(in[i]) - max);
      out[i] = stored_as<Number>(static_cast<float>(static_cast<double>(power) / sum));
    }
  });
}

template <class Number>
__global__ void __launch_bounds__(lanes_max) write_softmax_gradient(softmax_backward what, int lanes) {
  __shared__ double room[lanes_max];
  const team mine = row_team(lanes);
  each_row(what.rows, lanes, [&](std::int64_t row) {
    const std::int64_t width = row < what.rows ? what.width : 0;
    const Number* const y = static_cast<const Number*>(what.y) + row * what.width;
    const Number* const dy = static_cast<const Number*>(what.dy) + row * what.width;
    Number* const dx = static_cast<Number*>(what.dx) + row * what.width;
    const auto mean = static_cast<float>(sum_terms(room, mine, width, [&](std::int64_t i) {
      return static_cast<double>(widened(dy[i])) * static_cast<double>(widened(y[i]));
    }));
    for (std::int64_t i = mine.lane; i < width; i += mine.lanes)
      dx[i] = stored_as<Number>(widened(y[i]) * (widened(dy[i]) - mean));
  });
}

} // namespace

void run(queue on, precision stored, const softmax_forward& what) {
  const row_plan plan = rows_of(what.rows, what.width);
  with_number(stored, [&]<class Number>(Number) {
    launch(on, write_softmax<Number>, plan.blocks, plan.threads, what, plan.lanes);
  });
}

void run(queue on, precision stored, const softmax_backward& what) {
  const row_plan plan = rows_of(what.rows, what.width);
  with_number(stored, [&]<class Number>(Number) {
    launch(on, write_softmax_gradient<Number>, plan.blocks, plan.threads, what, plan.lanes);
  });
}

} // namespace dlrun::kernels::cuda
