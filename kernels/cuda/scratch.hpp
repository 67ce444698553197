/// How the steps that sum are cut into blocks, and so how much room they need for partial sums.
#pragma once

#include "kernels/cuda/steps.hpp"

#include <algorithm>
#include <cstdint>
#include <variant>

namespace dlrun::kernels::cuda {

/// Threads of the largest block that sums, and doubles of the shared memory by which it does.
constexpr int lanes_max = 1024;
/// Blocks that keep 132 multiprocessors busy, 4 each.
constexpr std::int64_t busy_blocks = std::int64_t{4} * 132;

/// How many threads sum `count` values: a power of two from `least`, which is one, to lanes_max; a
/// thread has up to 4 values before there are more threads.
constexpr int lanes_for(std::int64_t count, int least) {
  int lanes = least;
  while (lanes < lanes_max && std::int64_t{4} * lanes < count) lanes *= 2;
  return lanes;
}

/// How columns are summed. A block has `tile` columns that lie side by side, a team for each, and
/// of their rows one slice.
struct column_plan {
  int tile, threads;
  std::int64_t tiles, slices, slice_rows;
  constexpr std::int64_t blocks() const { return tiles * slices; }
};

/// For a matrix (rows, columns). 8 floats are what memory gives at once. Few tiles are cut into
/// slices until there are busy_blocks, none with less than 4 rows for each thread.
constexpr column_plan columns_of(std::int64_t rows, std::int64_t columns) {
  int tile = 1;
  while (tile < 8 && tile < columns) tile *= 2;
  const int threads = lanes_for(rows * tile, 32);
  const std::int64_t tiles = (columns + tile - 1) / tile;
  const std::int64_t slice_min = std::int64_t{4} * threads / tile;
  const std::int64_t wanted = std::max<std::int64_t>(1, std::min(rows / slice_min, busy_blocks / tiles));
  const std::int64_t slice_rows = std::max<std::int64_t>(1, (rows + wanted - 1) / wanted);
  return {tile, threads, tiles, std::max<std::int64_t>(1, (rows + slice_rows - 1) / slice_rows), slice_rows};
}

/// Blocks that sum the losses of `count` elements.
constexpr std::int64_t loss_blocks(std::int64_t count) {
  return std::min((count + lanes_max - 1) / lanes_max, busy_blocks);
}

/// Doubles that `scratch` of a step has room for. Who asks for a step leaves it null: the device
/// gives it room, of any content, that no other step of the lane has meanwhile.
constexpr std::int64_t scratch_of(const sum_columns& what) {
  return columns_of(what.rows, what.columns).slices * what.columns;
}
constexpr std::int64_t scratch_of(const batch_statistics& what) {
  return 2 * columns_of(what.rows, what.channels).slices * what.channels;
}
constexpr std::int64_t scratch_of(const batch_norm_backward& what) {
  return (2 * columns_of(what.rows, what.channels).slices + 1) * what.channels;
}
constexpr std::int64_t scratch_of(const group_norm_backward& what) {
  const auto& g = what.geometry;
  return 2 * columns_of(what.batch * g.pixels, g.channels).slices * g.channels;
}
constexpr std::int64_t scratch_of(const cross_entropy& what) { return what.rows; }
constexpr std::int64_t scratch_of(const distance& what) { return loss_blocks(what.rows * what.width); }
/// And of all other steps.
template <class Step>
constexpr std::int64_t scratch_of(const Step&) {
  return 0;
}

inline std::int64_t scratch_of_step(const step& what) {
  return std::visit([](const auto& one) { return scratch_of(one); }, what);
}
/// The step, with that room.
inline step with_scratch(step what, double* room) {
  std::visit(
      [room](auto& one) {
        if constexpr (requires { one.scratch; }) one.scratch = room;
      },
      what);
  return what;
}

} // namespace dlrun::kernels::cuda
