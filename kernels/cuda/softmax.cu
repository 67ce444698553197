#include "kernels/cuda/softmax.hpp"

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/reduce.hpp"

#include <cmath>

namespace dlrun::kernels::cuda {
namespace {

__global__ void __launch_bounds__(lanes_max) write_softmax(softmax_forward what, int lanes) {
  __shared__ double room[lanes_max];
  const team mine = row_team(lanes);
  each_row(what.rows, lanes, [&](std::int64_t row) {
    const std::int64_t width = row < what.rows ? what.width : 0;
    const float* const in = what.x + row * what.width;
    float* const out = what.y + row * what.width;
    float max = -INFINITY;
    for (std::int64_t i = mine.lane; i < width; i += mine.lanes) max = max < in[i] ? in[i] : max;
    max = static_cast<float>(largest_value(room, mine, static_cast<double>(max)));
    const double sum = sum_terms(room, mine, width, [&](std::int64_t i) {
      out[i] = std::exp(in[i] - max);
      return static_cast<double>(out[i]);
    });
    for (std::int64_t i = mine.lane; i < width; i += mine.lanes)
      out[i] = static_cast<float>(static_cast<double>(out[i]) / sum);
  });
}

__global__ void __launch_bounds__(lanes_max) write_softmax_gradient(softmax_backward what, int lanes) {
  __shared__ double room[lanes_max];
  const team mine = row_team(lanes);
  each_row(what.rows, lanes, [&](std::int64_t row) {
    const std::int64_t width = row < what.rows ? what.width : 0;
    const float* const y = what.y + row * what.width;
    const float* const dy = what.dy + row * what.width;
    float* const dx = what.dx + row * what.width;
    const auto mean = static_cast<float>(sum_terms(room, mine, width, [&](std::int64_t i) {
      return static_cast<double>(dy[i]) * static_cast<double>(y[i]);
    }));
    for (std::int64_t i = mine.lane; i < width; i += mine.lanes) dx[i] = y[i] * (dy[i] - mean);
  });
}

} // namespace

void run(queue on, const softmax_forward& what) {
  const row_plan plan = rows_of(what.rows, what.width);
  launch(on, write_softmax, plan.blocks, plan.threads, what, plan.lanes);
}

void run(queue on, const softmax_backward& what) {
  const row_plan plan = rows_of(what.rows, what.width);
  launch(on, write_softmax_gradient, plan.blocks, plan.threads, what, plan.lanes);
}

} // namespace dlrun::kernels::cuda
