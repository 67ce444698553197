#include "kernels/cuda/norm.hpp"

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/fours.hpp"
#include "kernels/cuda/reduce.hpp"

#include <cmath>

namespace dlrun::kernels::cuda {
namespace {

/// Of a weight or bias that a layer may lack.
__device__ float value_or(const float* values, std::int64_t c, float otherwise) {
  return values == nullptr ? otherwise : values[c];
}

/// Number `i` of an activation.
template <class Number>
__device__ float number_at(const void* activation, std::int64_t i) {
  return widened(static_cast<const Number*>(activation)[i]);
}
template <class Number>
__device__ void write_number(void* activation, std::int64_t i, float value) {
  static_cast<Number*>(activation)[i] = stored_as<Number>(value);
}

// ---- batches

/// Of a channel: what its values are counted from, so that squares of them lose no digits to a
/// large mean.
template <class Number>
__device__ double pivot_of(const batch_statistics& what, std::int64_t c) {
  return static_cast<double>(number_at<Number>(what.x, c));
}

/// Sums of distances from the pivot, and behind them those of their squares.
template <class Number>
__global__ void __launch_bounds__(lanes_max) sum_batch_slices(batch_statistics what, column_plan plan) {
  __shared__ double room[lanes_max];
  const own_column c(plan, what.rows, what.channels);
  const double pivot = c.inside ? pivot_of<Number>(what, c.number) : 0.0;
  c.write_two_sums(room, what.scratch, plan, what.channels, [&](std::int64_t row, double& squares) {
    const double distance =
        static_cast<double>(number_at<Number>(what.x, row * what.channels + c.number)) - pivot;
    squares += distance * distance;
    return distance;
  });
}

template <class Number>
__global__ void write_batch_statistics(batch_statistics what, column_plan plan) {
  const auto rows = static_cast<double>(what.rows);
  for (std::int64_t c = thread_number(); c < what.channels; c += thread_count()) {
    const auto [sum, from_pivot] = sum_two_slices(what.scratch, plan, what.channels, c);
    const double from_mean = from_pivot - sum * sum / rows;
    const double squares = from_mean < 0 ? 0.0 : from_mean;
    what.mean[c] = static_cast<float>(pivot_of<Number>(what, c) + sum / rows);
    what.unbiased_variance[c] = static_cast<float>(squares / (rows - 1));
    what.inverse_deviation[c] =
        static_cast<float>(1.0 / std::sqrt(squares / rows + static_cast<double>(what.eps)));
  }
}

__global__ void invert_deviations(inverse_deviation what) {
  for (std::int64_t c = thread_number(); c < what.channels; c += thread_count())
    what.to[c] = 1.0F / std::sqrt(what.variance[c] + what.eps);
}

struct normalised {
  normalise what;
  __device__ four operator()(std::int64_t group, const four& x, const four&) const {
    const four_columns c = columns_of_group(group, what.channels);
    four out;
    for (int k = 0; k < 4; ++k) {
      const float scale = what.inverse_deviation[c.at[k]] * value_or(what.weight, c.at[k], 1.0F);
      out.v[k] = (x.v[k] - what.mean[c.at[k]]) * scale + value_or(what.bias, c.at[k], 0.0F);
    }
    return out;
  }
};

template <class Number>
__global__ void __launch_bounds__(lanes_max) sum_gradient_slices(batch_norm_backward what, column_plan plan) {
  __shared__ double room[lanes_max];
  const own_column c(plan, what.rows, what.channels);
  const float centre = c.inside ? what.mean[c.number] : 0.0F;
  const float deviation = c.inside ? what.inverse_deviation[c.number] : 0.0F;
  c.write_two_sums(room, what.scratch, plan, what.channels, [&](std::int64_t row, double& sum_xhat) {
    const std::int64_t i = row * what.channels + c.number;
    const auto dy = static_cast<double>(number_at<Number>(what.dy, i));
    sum_xhat += dy * static_cast<double>((number_at<Number>(what.x, i) - centre) * deviation);
    return dy;
  });
}

/// Of a channel: what sum_gradient_slices() comes to, for each row.
struct mean_slopes {
  float dy, dy_xhat;
};
/// They lie behind the slices.
inline __device__ __host__ mean_slopes* mean_slopes_of(const batch_norm_backward& what,
                                                       const column_plan& plan) {
  return reinterpret_cast<mean_slopes*>(what.scratch + 2 * plan.slices * what.channels);
}

__global__ void join_gradient_slices(batch_norm_backward what, column_plan plan) {
  const auto rows = static_cast<double>(what.rows);
  for (std::int64_t c = thread_number(); c < what.channels; c += thread_count()) {
    const auto [dy, dy_xhat] = sum_two_slices(what.scratch, plan, what.channels, c);
    if (what.dbias != nullptr) what.dbias[c] = static_cast<float>(dy);
    if (what.dweight != nullptr) what.dweight[c] = static_cast<float>(dy_xhat);
    mean_slopes_of(what, plan)[c] = {static_cast<float>(dy / rows), static_cast<float>(dy_xhat / rows)};
  }
}

struct batch_norm_slope {
  batch_norm_backward what;
  const mean_slopes* means;
  __device__ four operator()(std::int64_t group, const four& x, const four& dy) const {
    const four_columns columns = columns_of_group(group, what.channels);
    four out;
    for (int k = 0; k < 4; ++k) {
      const std::int64_t c = columns.at[k];
      const float deviation = what.inverse_deviation[c];
      const float scale = deviation * value_or(what.weight, c, 1.0F);
      const float xhat = (x.v[k] - what.mean[c]) * deviation;
      out.v[k] = scale * (dy.v[k] - means[c].dy - xhat * means[c].dy_xhat);
    }
    return out;
  }
};

// ---- groups

/// The elements of a record's group, which is this block's.
class own_group {
public:
  __device__ explicit own_group(const cpu::group_geometry& g)
      : number(blockIdx.x)
      , width_(g.channels / g.groups)
      , pixels_(g.pixels)
      , channels_(g.channels)
      , first_channel_(number % g.groups * width_)
      , begin_(number / g.groups * g.pixels * g.channels + first_channel_) {}

  __device__ double size() const { return static_cast<double>(width_ * pixels_); }

  /// Calls action(index, channel) for those of this thread.
  template <class Action>
  __device__ void each(Action action) const {
    for (stepping at(threadIdx.x, blockDim.x, width_); at.quotient < pixels_; at.next())
      action(begin_ + at.quotient * channels_ + at.remainder, first_channel_ + at.remainder);
  }

  std::int64_t number; ///< among the groups of all records

private:
  std::int64_t width_, pixels_, channels_, first_channel_, begin_;
};

template <class Number>
__global__ void __launch_bounds__(lanes_max) write_group_normalised(group_norm_forward what) {
  __shared__ double room[lanes_max];
  const own_group group(what.geometry);
  double sum = 0;
  group.each([&](std::int64_t i, std::int64_t) { sum += static_cast<double>(number_at<Number>(what.x, i)); });
  const double mean = sum_values(room, whole_block(), sum) / group.size();
  double squares = 0;
  group.each([&](std::int64_t i, std::int64_t) {
    const double distance = static_cast<double>(number_at<Number>(what.x, i)) - mean;
    squares += distance * distance;
  });
  const double variance = sum_values(room, whole_block(), squares) / group.size();
  const auto centre = static_cast<float>(mean);
  const auto deviation =
      static_cast<float>(1.0 / std::sqrt(variance + static_cast<double>(what.geometry.eps)));
  if (threadIdx.x == 0) {
    what.mean[group.number] = centre;
    what.inverse_deviation[group.number] = deviation;
  }
  group.each([&](std::int64_t i, std::int64_t c) {
    const float scale = deviation * value_or(what.weight, c, 1.0F);
    const float y = (number_at<Number>(what.x, i) - centre) * scale + value_or(what.bias, c, 0.0F);
    write_number<Number>(what.y, i, y);
  });
}

template <class Number>
__global__ void __launch_bounds__(lanes_max) write_group_gradient(group_norm_backward what) {
  __shared__ double room[lanes_max];
  const own_group group(what.geometry);
  const float centre = what.mean[group.number];
  const float deviation = what.inverse_deviation[group.number];
  const auto xhat = [&](std::int64_t i) { return (number_at<Number>(what.x, i) - centre) * deviation; };
  double sum = 0;
  double sum_of_products = 0;
  group.each([&](std::int64_t i, std::int64_t c) {
    const double gradient = static_cast<double>(number_at<Number>(what.dy, i)) *
                            static_cast<double>(value_or(what.weight, c, 1.0F));
    sum += gradient;
    sum_of_products += gradient * static_cast<double>(xhat(i));
  });
  const auto lost = static_cast<float>(sum_values(room, whole_block(), sum) / group.size());
  const auto lost_product =
      static_cast<float>(sum_values(room, whole_block(), sum_of_products) / group.size());
  group.each([&](std::int64_t i, std::int64_t c) {
    const float gradient = number_at<Number>(what.dy, i) * value_or(what.weight, c, 1.0F);
    write_number<Number>(what.dx, i, deviation * (gradient - lost - xhat(i) * lost_product));
  });
}

/// For dweight and dbias: sums over the pixels of all records.
template <class Number>
__global__ void __launch_bounds__(lanes_max) sum_group_slices(group_norm_backward what, column_plan plan) {
  __shared__ double room[lanes_max];
  const cpu::group_geometry& g = what.geometry;
  const own_column c(plan, what.batch * g.pixels, g.channels);
  const std::int64_t group = c.number / (g.channels / g.groups);
  stepping at(c.first + c.lanes.lane, c.lanes.lanes, g.pixels); // record and pixel of the row
  c.write_two_sums(room, what.scratch, plan, g.channels, [&](std::int64_t row, double& weight) {
    const std::int64_t i = row * g.channels + c.number;
    const std::int64_t number = at.quotient * g.groups + group;
    const float x = number_at<Number>(what.x, i), slope = number_at<Number>(what.dy, i);
    const auto dy = static_cast<double>(slope);
    const float centred = x - what.mean[number];
    weight += dy * static_cast<double>(centred * what.inverse_deviation[number]);
    at.next();
    return dy;
  });
}

__global__ void write_group_parameter_gradients(group_norm_backward what, column_plan plan) {
  const std::int64_t channels = what.geometry.channels;
  for (std::int64_t c = thread_number(); c < channels; c += thread_count()) {
    const auto [bias, weight] = sum_two_slices(what.scratch, plan, channels, c);
    if (what.dweight != nullptr) what.dweight[c] = static_cast<float>(weight);
    if (what.dbias != nullptr) what.dbias[c] = static_cast<float>(bias);
  }
}

/// Threads of the block that has a group.
int threads_for(const cpu::group_geometry& g) { return lanes_for(g.channels / g.groups * g.pixels, 32); }

} // namespace

void run(queue on, precision stored, const batch_statistics& what) {
  const column_plan plan = columns_of(what.rows, what.channels);
  with_number(stored, [&]<class Number>(Number) {
    launch(on, sum_batch_slices<Number>, plan.blocks(), plan.threads, what, plan);
    launch(on, write_batch_statistics<Number>, blocks_for(what.channels), block_threads, what, plan);
  });
}

void run(queue on, const inverse_deviation& what) {
  launch(on, invert_deviations, blocks_for(what.channels), block_threads, what);
}

void run(queue on, precision stored, const normalise& what) {
  run_fours(on, stored, normalised{what}, what.x, nullptr, what.y, what.rows * what.channels);
}

void run(queue on, precision stored, const batch_norm_backward& what) {
  const column_plan plan = columns_of(what.rows, what.channels);
  with_number(stored, [&]<class Number>(Number) {
    launch(on, sum_gradient_slices<Number>, plan.blocks(), plan.threads, what, plan);
  });
  launch(on, join_gradient_slices, blocks_for(what.channels), block_threads, what, plan);
  if (what.dx != nullptr)
    run_fours(on, stored, batch_norm_slope{what, mean_slopes_of(what, plan)}, what.x, what.dy, what.dx,
              what.rows * what.channels);
}

void run(queue on, precision stored, const group_norm_forward& what) {
  with_number(stored, [&]<class Number>(Number) {
    launch(on, write_group_normalised<Number>, what.batch * what.geometry.groups, threads_for(what.geometry),
           what);
  });
}

void run(queue on, precision stored, const group_norm_backward& what) {
  const cpu::group_geometry& g = what.geometry;
  const column_plan plan = columns_of(what.batch * g.pixels, g.channels);
  const bool for_parameters = what.dweight != nullptr || what.dbias != nullptr;
  with_number(stored, [&]<class Number>(Number) {
    if (what.dx != nullptr)
      launch(on, write_group_gradient<Number>, what.batch * g.groups, threads_for(g), what);
    if (for_parameters) launch(on, sum_group_slices<Number>, plan.blocks(), plan.threads, what, plan);
  });
  if (for_parameters)
    launch(on, write_group_parameter_gradients, blocks_for(g.channels), block_threads, what, plan);
}

} // namespace dlrun::kernels::cuda
