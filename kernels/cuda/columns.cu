#include "kernels/cuda/columns.hpp"

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/fours.hpp"
#include "kernels/cuda/reduce.hpp"

#include <limits>

namespace dlrun::kernels::cuda {
namespace {

template <class Number>
__global__ void __launch_bounds__(lanes_max) sum_column_slices(sum_columns what, column_plan plan) {
  __shared__ double room[lanes_max];
  const own_column c(plan, what.rows, what.columns);
  const auto* const from = static_cast<const Number*>(what.from);
  const double sum = c.sum(room, [&](std::int64_t row) {
    return static_cast<double>(widened(from[row * what.columns + c.number]));
  });
  if (c.inside && c.lanes.lane == 0) what.scratch[c.slice * what.columns + c.number] = sum;
}

__global__ void write_column_sums(sum_columns what, column_plan plan) {
  for (std::int64_t c = thread_number(); c < what.columns; c += thread_count())
    what.sums[c] = static_cast<float>(sum_slices(what.scratch, plan, what.columns, c));
}

/// One row for all; what is not above `least` becomes that, but NaN stays.
struct added_row {
  const float* row;
  std::int64_t columns;
  float least;
  __device__ four operator()(std::int64_t group, const four& from, const four&) const {
    const four_columns c = columns_of_group(group, columns);
    four out;
    for (int k = 0; k < 4; ++k) {
      const float sum = from.v[k] + row[c.at[k]];
      out.v[k] = sum <= least ? least : sum;
    }
    return out;
  }
};

} // namespace

void run(queue on, precision stored, const sum_columns& what) {
  const column_plan plan = columns_of(what.rows, what.columns);
  with_number(stored, [&]<class Number>(Number) {
    launch(on, sum_column_slices<Number>, plan.blocks(), plan.threads, what, plan);
  });
  launch(on, write_column_sums, blocks_for(what.columns), block_threads, what, plan);
}

void run(queue on, precision stored, const add_row& what) {
  const float least = what.relu ? 0.0F : -std::numeric_limits<float>::infinity();
  run_fours(on, stored, added_row{what.row, what.columns, least}, what.to, nullptr, what.to,
            what.rows * what.columns);
}

} // namespace dlrun::kernels::cuda
