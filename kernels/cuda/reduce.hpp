/// Sums in an order that the sizes fix: which elements each thread of a block takes, and how the
/// threads then join what they have.
#pragma once

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/scratch.hpp"

#include <algorithm>
#include <cstdint>

namespace dlrun::kernels::cuda {

/// Threads of a block that sum together: `lanes` of them, a power of two, of which this is number
/// `lane`. From each to the next it is `apart` threads.
struct team {
  int lanes, apart, lane;
};

/// All threads of the block.
inline __device__ team whole_block() {
  return {static_cast<int>(blockDim.x), 1, static_cast<int>(threadIdx.x)};
}

/// Joins a `value` of each thread of a team, in a tree. All threads of the block call it.
/// @returns the same to the whole team.
template <class Join>
__device__ double join_values(double* room, const team& of, double value, Join join) {
  const int me = static_cast<int>(threadIdx.x);
  __syncthreads(); // until then what was joined before is read
  room[me] = value;
  for (int half = of.lanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (of.lane < half) room[me] = join(room[me], room[me + half * of.apart]);
  }
  __syncthreads();
  return room[me - of.lane * of.apart];
}

/// The sum of the `values`: join_values().
inline __device__ double sum_values(double* room, const team& of, double value) {
  return join_values(room, of, value, [](double a, double b) { return a + b; });
}

/// The largest of the `values`, of which those that are not a number may be left out.
inline __device__ double largest_value(double* room, const team& of, double value) {
  return join_values(room, of, value, [](double a, double b) { return a < b ? b : a; });
}

/// The sum of term(i) for i from 0 to `count` - 1: sum_values().
template <class Term>
__device__ double sum_terms(double* room, const team& of, std::int64_t count, Term term) {
  double sum = 0;
  for (std::int64_t i = of.lane; i < count; i += of.lanes) sum += term(i);
  return sum_values(room, of, sum);
}

/// The same, of terms that are little more than something read: four at a time, or a thread would
/// wait for memory more than it reads.
template <class Term>
__device__ double sum_reads(double* room, const team& of, std::int64_t count, Term term) {
  double sum = 0;
  std::int64_t i = of.lane;
  for (; i + 3 * of.lanes < count; i += 4 * of.lanes) {
    const double a = term(i), b = term(i + of.lanes), c = term(i + 2 * of.lanes), d = term(i + 3 * of.lanes);
    sum += a;
    sum += b;
    sum += c;
    sum += d;
  }
  for (; i < count; i += of.lanes) sum += term(i);
  return sum_values(room, of, sum);
}

/// Numbers from `first` on, each `step` more than the one before, as quotient and remainder by
/// `base`. Division is slow on GPUs: here it is not in the loop.
class stepping {
public:
  __device__ stepping(std::int64_t first, std::int64_t step, std::int64_t base)
      : quotient(first / base)
      , remainder(first % base)
      , base_(base)
      , quotient_step_(step / base)
      , remainder_step_(step % base) {}

  __device__ void next() {
    quotient += quotient_step_;
    remainder += remainder_step_;
    if (remainder < base_) return;
    remainder -= base_;
    ++quotient;
  }

  std::int64_t quotient, remainder;

private:
  std::int64_t base_, quotient_step_, remainder_step_;
};

// ---- columns of a matrix

/// This thread's column, which may be beyond the last one, and the rows of its block's slice.
struct own_column {
  __device__ own_column(const column_plan& plan, std::int64_t rows, std::int64_t columns)
      : number(blockIdx.x % plan.tiles * plan.tile + threadIdx.x % static_cast<unsigned>(plan.tile))
      , slice(blockIdx.x / plan.tiles)
      , inside(number < columns)
      , lanes{static_cast<int>(blockDim.x) / plan.tile, plan.tile, static_cast<int>(threadIdx.x) / plan.tile}
      , first(slice * plan.slice_rows)
      , end(inside ? std::min(rows, first + plan.slice_rows) : first) {}

  /// The sum of term(row) over the rows of the slice: sum_reads().
  template <class Term>
  __device__ double sum(double* room, Term term) const {
    return sum_reads(room, lanes, end - first, [&](std::int64_t row) { return term(first + row); });
  }

  /// Two sums at once, into `scratch`: that of what term(row, second) returns and, behind those of
  /// all slices, that of what it adds to `second`.
  template <class Term>
  __device__ void write_two_sums(double* room, double* scratch, const column_plan& plan, std::int64_t columns,
                                 Term term) const {
    double second = 0;
    const double total = sum(room, [&](std::int64_t row) { return term(row, second); });
    second = sum_values(room, lanes, second);
    if (!inside || lanes.lane != 0) return;
    double* const to = scratch + slice * columns + number;
    to[0] = total;
    to[plan.slices * columns] = second;
  }

  std::int64_t number, slice;
  bool inside;
  team lanes;
  std::int64_t first, end; ///< of the rows; none where the column is not inside
};

/// The sum of column `c` of what the slices have written, (slices, columns).
inline __device__ double sum_slices(const double* scratch, const column_plan& plan, std::int64_t columns,
                                    std::int64_t c) {
  double sum = 0;
  for (std::int64_t slice = 0; slice < plan.slices; ++slice) sum += scratch[slice * columns + c];
  return sum;
}

struct two_sums {
  double first, second;
};
/// Of what write_two_sums() has written.
inline __device__ two_sums sum_two_slices(const double* scratch, const column_plan& plan,
                                          std::int64_t columns, std::int64_t c) {
  return {sum_slices(scratch, plan, columns, c),
          sum_slices(scratch + plan.slices * columns, plan, columns, c)};
}

// ---- rows of a matrix

/// How rows are summed: a team of `lanes` for each. A block has several teams where rows are
/// short, and takes further rows where there are more than all blocks have teams.
struct row_plan {
  int lanes, threads;
  std::int64_t blocks;
};

/// For a matrix (rows, width).
constexpr row_plan rows_of(std::int64_t rows, std::int64_t width) {
  const int lanes = lanes_for(width, 1);
  const int threads = std::max(lanes, std::min(block_threads, lanes_for(rows * width, 32)));
  const std::int64_t teams = threads / lanes;
  const std::int64_t wanted = (rows + teams - 1) / teams;
  return {lanes, threads, std::min(wanted, blocks_max)};
}

inline __device__ team row_team(int lanes) { return {lanes, 1, static_cast<int>(threadIdx.x) % lanes}; }

/// Calls action(row) for the rows of this thread's team, the same number of times in all threads of
/// a block: a row may be beyond the last one.
template <class Action>
__device__ void each_row(std::int64_t rows, int lanes, Action action) {
  const std::int64_t teams = static_cast<int>(blockDim.x) / lanes;
  const std::int64_t own = static_cast<int>(threadIdx.x) / lanes;
  for (std::int64_t first = blockIdx.x * teams; first < rows; first += gridDim.x * teams) action(first + own);
}

} // namespace dlrun::kernels::cuda
