#include "kernels/cuda/move.hpp"

#include "kernels/cuda/bf16.hpp"

namespace dlrun::kernels::cuda {
namespace {

constexpr int tile_side = 32;
constexpr int tile_rows = block_threads / tile_side; ///< that a block reads at once

/// `batch` matrices (rows, columns) and where their transposes go.
template <class From, class To>
struct matrices {
  std::int64_t batch, rows, columns;
  const From* from;
  To* to;
};

/// A block moves tiles of 32 x 32 numbers through shared memory, so that it reads and writes whole
/// lines of memory. A row more of shared memory keeps the threads that read a column of it out of
/// each other's way.
template <class From, class To>
__global__ void transpose_tiles(matrices<From, To> s, std::int64_t tiles_down, std::int64_t tiles_across) {
  __shared__ float tile[tile_side][tile_side + 1];
  const int line = static_cast<int>(threadIdx.x) / tile_side,
            place = static_cast<int>(threadIdx.x) % tile_side;
  const std::int64_t tiles = s.batch * tiles_down * tiles_across;
  for (std::int64_t number = blockIdx.x; number < tiles; number += gridDim.x) {
    const std::int64_t matrix = number / (tiles_down * tiles_across) * s.rows * s.columns;
    const std::int64_t row0 = number / tiles_across % tiles_down * tile_side;
    const std::int64_t column0 = number % tiles_across * tile_side;
    for (int k = line; k < tile_side; k += tile_rows)
      if (row0 + k < s.rows && column0 + place < s.columns)
        tile[k][place] = widened(s.from[matrix + (row0 + k) * s.columns + column0 + place]);
    __syncthreads();
    for (int k = line; k < tile_side; k += tile_rows)
      if (column0 + k < s.columns && row0 + place < s.rows)
        s.to[matrix + (column0 + k) * s.rows + row0 + place] = stored_as<To>(tile[place][k]);
    __syncthreads();
  }
}

template <class Number>
__global__ void read_columns_each(read_columns s) {
  const auto* const from = static_cast<const Number*>(s.from);
  auto* const to = static_cast<Number*>(s.to);
  const std::int64_t count = s.rows * s.run.count;
  for (std::int64_t i = thread_number(); i < count; i += thread_count())
    to[i] = from[i / s.run.count * s.run.width + s.run.first + i % s.run.count];
}

template <class Number>
__global__ void write_columns_each(write_columns s) {
  const auto* const from = static_cast<const Number*>(s.from);
  auto* const to = static_cast<Number*>(s.to);
  const std::int64_t count = s.rows * s.run.count;
  for (std::int64_t i = thread_number(); i < count; i += thread_count())
    to[i / s.run.count * s.run.width + s.run.first + i % s.run.count] = from[i];
}

template <class From, class To>
void run_tiles(queue on, const matrices<From, To>& what) {
  const std::int64_t down = (what.rows + tile_side - 1) / tile_side;
  const std::int64_t across = (what.columns + tile_side - 1) / tile_side;
  const std::int64_t tiles = what.batch * down * across;
  launch(on, transpose_tiles<From, To>, tiles < blocks_max ? tiles : blocks_max, block_threads, what, down,
         across);
}

} // namespace

void run(queue on, precision stored, const transpose& what) {
  with_number(stored, [&]<class Number>(Number) {
    run_tiles(on,
              matrices<Number, Number>{what.batch, what.rows, what.columns,
                                       static_cast<const Number*>(what.from), static_cast<Number*>(what.to)});
  });
}

void run(queue on, precision stored, const transpose_narrowing& what) {
  with_number(stored, [&]<class Number>(Number) {
    run_tiles(on, matrices<float, Number>{what.batch, what.rows, what.columns, what.from,
                                          static_cast<Number*>(what.to)});
  });
}

void run(queue on, precision stored, const transpose_widening& what) {
  with_number(stored, [&]<class Number>(Number) {
    run_tiles(on, matrices<Number, float>{what.batch, what.rows, what.columns,
                                          static_cast<const Number*>(what.from), what.to});
  });
}

void run(queue on, precision stored, const read_columns& what) {
  with_number(stored, [&]<class Number>(Number) {
    launch(on, read_columns_each<Number>, blocks_for(what.rows * what.run.count), block_threads, what);
  });
}

void run(queue on, const read_float_columns& what) {
  run(on, precision::fp32, read_columns{what.rows, what.run, what.from, what.to});
}

void run(queue on, precision stored, const write_columns& what) {
  with_number(stored, [&]<class Number>(Number) {
    launch(on, write_columns_each<Number>, blocks_for(what.rows * what.run.count), block_threads, what);
  });
}

} // namespace dlrun::kernels::cuda
