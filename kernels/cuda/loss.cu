#include "kernels/cuda/loss.hpp"

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/reduce.hpp"

#include <algorithm>
#include <cmath>

namespace dlrun::kernels::cuda {
namespace {

// ---- cross_entropy

/// A row as the team sees it that has it. Beyond the last row there is nothing.
struct score_row {
  const float* scores;
  std::int64_t classes; ///< 0 beyond the last row
  std::int64_t label;
};

__device__ score_row row_of(const cross_entropy& what, std::int64_t row) {
  if (row >= what.rows) return {nullptr, 0, 0};
  return {what.scores + row * what.classes, what.classes, what.labels[row]};
}

__device__ bool is_plain(const cross_entropy& what) {
  return what.weight == nullptr && what.label_smoothing == 0;
}

__device__ double weight_of(const cross_entropy& what, std::int64_t c) {
  return what.weight == nullptr ? 1.0 : what.weight[c];
}

/// What each class has of the target, times its weight, and what the label has more.
__device__ double spread_of(const cross_entropy& what) {
  return what.label_smoothing / static_cast<double>(what.classes);
}
__device__ double own_of(const cross_entropy& what, std::int64_t label) {
  return (1 - what.label_smoothing) * weight_of(what, label);
}

/// log(sum(exp(scores))), without overflow.
__device__ double log_sum_exp(double* room, const team& mine, const score_row& row) {
  float max = -INFINITY;
  for (std::int64_t c = mine.lane; c < row.classes; c += mine.lanes)
    if (row.scores[c] > max) max = row.scores[c];
  max = static_cast<float>(largest_value(room, mine, static_cast<double>(max)));
  const double sum = sum_terms(room, mine, row.classes, [&](std::int64_t c) {
    return std::exp(static_cast<double>(row.scores[c] - max));
  });
  return std::log(sum) + static_cast<double>(max);
}

/// This thread's part of a row's loss, of which the rest is with the others of the team.
__device__ double part_of_loss(const cross_entropy& what, const team& mine, const score_row& row,
                               double normaliser) {
  if (row.classes == 0) return 0;
  const auto minus_log = [&](std::int64_t c) { return normaliser - static_cast<double>(row.scores[c]); };
  double loss = mine.lane == 0 ? own_of(what, row.label) * minus_log(row.label) : 0.0;
  const double spread = spread_of(what);
  if (spread > 0) // else an impossible class (a score of -infinity) would count: 0 * infinity
    for (std::int64_t c = mine.lane; c < row.classes; c += mine.lanes)
      loss += spread * weight_of(what, c) * minus_log(c);
  return loss;
}

/// Writes what this thread's team has of the gradient of a row.
__device__ void write_row_gradient(const cross_entropy& what, const team& mine, const score_row& row,
                                   double normaliser, double sum_of_weights, float* gradient) {
  const bool plain = is_plain(what);
  const double spread = spread_of(what);
  const double own = own_of(what, row.label);
  const double total = own + spread * sum_of_weights;
  for (std::int64_t c = mine.lane; c < row.classes; c += mine.lanes) {
    const double probability = std::exp(static_cast<double>(row.scores[c]) - normaliser);
    const bool is_label = c == row.label;
    const double target = spread * weight_of(what, c) + (is_label ? own : 0.0);
    gradient[c] = plain ? static_cast<float>(probability) - (is_label ? 1.0F : 0.0F)
                        : static_cast<float>(total * probability - target);
  }
}

__global__ void __launch_bounds__(lanes_max) write_cross_entropy(cross_entropy what, int lanes) {
  __shared__ double room[lanes_max];
  const team mine = row_team(lanes);
  const double sum_of_weights =
      sum_terms(room, mine, what.classes, [&](std::int64_t c) { return weight_of(what, c); });
  each_row(what.rows, lanes, [&](std::int64_t number) {
    const score_row row = row_of(what, number);
    const double normaliser = log_sum_exp(room, mine, row);
    const double loss = sum_values(room, mine, part_of_loss(what, mine, row, normaliser));
    if (row.classes == 0) return;
    if (mine.lane == 0) what.scratch[number] = loss;
    if (what.gradient != nullptr)
      write_row_gradient(what, mine, row, normaliser, sum_of_weights, what.gradient + number * what.classes);
  });
}

/// *loss = the sum of `count` numbers, divided. One block.
__global__ void __launch_bounds__(lanes_max)
    sum_losses(const double* losses, std::int64_t count, double divisor, double* loss) {
  __shared__ double room[lanes_max];
  const double sum = sum_terms(room, whole_block(), count, [&](std::int64_t i) { return losses[i]; });
  if (threadIdx.x == 0) *loss = sum / divisor;
}

// ---- distance

/// Loss of one element and its derivative by the output.
struct point {
  double value, slope;
};

__device__ double sigmoid(double x) {
  const double small = std::exp(-std::abs(x));
  return (x < 0 ? small : 1.0) / (1.0 + small);
}

__device__ point bce_with_logits(double x, double y, double pos_weight) {
  const double factor = 1 + (pos_weight - 1) * y;
  const double minus_log_sigmoid = std::log1p(std::exp(-std::abs(x))) + std::max(-x, 0.0);
  return {(1 - y) * x + factor * minus_log_sigmoid, (1 - y) - factor * sigmoid(-x)};
}

__device__ point huber(double x, double y, double delta) {
  const double distance = std::abs(x - y);
  if (distance > delta) return {delta * (distance - delta / 2), std::copysign(delta, x - y)};
  return {distance * distance / 2, x - y}; // also of what is not a number
}

/// Of element `i`.
__device__ point point_at(const distance& what, std::int64_t i) {
  const auto x = static_cast<double>(what.outputs[i]);
  const auto y = static_cast<double>(what.targets[i]);
  switch (what.kind) {
  case distance_kind::bce_with_logits: {
    const std::int64_t column = what.pos_weights <= 1 ? 0 : i % what.width;
    return bce_with_logits(x, y, what.pos_weight == nullptr ? 1.0 : what.pos_weight[column]);
  }
  case distance_kind::mse: return {(x - y) * (x - y), 2 * (x - y)};
  case distance_kind::l1: {
    const double distance = std::abs(x - y);
    return {distance, distance == 0 ? 0.0 : (x - y) / distance};
  }
  case distance_kind::huber: break;
  }
  return huber(x, y, what.delta);
}

/// The sum of the losses of this block's elements, and their gradients.
__global__ void __launch_bounds__(lanes_max) write_distance(distance what) {
  __shared__ double room[lanes_max];
  double sum = 0;
  for (std::int64_t i = thread_number(); i < what.rows * what.width; i += thread_count()) {
    const point at = point_at(what, i);
    sum += at.value;
    if (what.gradient != nullptr)
      what.gradient[i] = static_cast<float>(at.slope / static_cast<double>(what.width));
  }
  sum = sum_values(room, whole_block(), sum);
  if (threadIdx.x == 0) what.scratch[blockIdx.x] = sum;
}

} // namespace

void run(queue on, const cross_entropy& what) {
  const row_plan plan = rows_of(what.rows, what.classes);
  launch(on, write_cross_entropy, plan.blocks, plan.threads, what, plan.lanes);
  launch(on, sum_losses, 1, lanes_for(what.rows, 32), what.scratch, what.rows, 1.0, what.loss);
}

void run(queue on, const distance& what) {
  const std::int64_t blocks = loss_blocks(what.rows * what.width);
  launch(on, write_distance, blocks, block_threads, what);
  launch(on, sum_losses, 1, lanes_for(blocks, 32), what.scratch, blocks, static_cast<double>(what.width),
         what.loss);
}

} // namespace dlrun::kernels::cuda
