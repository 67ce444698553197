/// Kernels that make each number of a vector from those at the same place of others: four at a
/// time, which is what memory gives at once.
#pragma once

#include "kernels/cuda/bf16.hpp"
#include "kernels/cuda/device.hpp"

#include <cstdint>

namespace dlrun::kernels::cuda {

/// Numbers that are read and written at once: with one access where they are aligned as they ask.
template <class Number>
struct alignas(4 * sizeof(Number)) packed_four {
  Number v[4];
};
/// Those that are computed with.
using four = packed_four<float>;

/// Numbers 4 group to 4 group + 3 of `from`, of `count`; 0 where there are none, all where `from`
/// is null.
template <class Number>
__device__ four read_four(const Number* from, std::int64_t group, std::int64_t count, bool whole) {
  four out{};
  if (from == nullptr) return out;
  if (whole) {
    const packed_four<Number> read = reinterpret_cast<const packed_four<Number>*>(from)[group];
    for (int k = 0; k < 4; ++k) out.v[k] = widened(read.v[k]);
    return out;
  }
  for (std::int64_t k = 0; k < 4 && 4 * group + k < count; ++k) out.v[k] = widened(from[4 * group + k]);
  return out;
}

template <class Number>
__device__ void write_four(Number* to, std::int64_t group, std::int64_t count, bool whole,
                           const four& values) {
  packed_four<Number> out;
  for (int k = 0; k < 4; ++k) out.v[k] = stored_as<Number>(values.v[k]);
  if (whole)
    reinterpret_cast<packed_four<Number>*>(to)[group] = out;
  else
    for (std::int64_t k = 0; k < 4 && 4 * group + k < count; ++k) to[4 * group + k] = out.v[k];
}

/// `to` = function(group, four of a, four of b), for all groups of four. `a` and `b` may be null,
/// or `to`. A function may have begin(), which each thread calls first.
template <class Function, class From, class To>
__global__ void map_fours(Function function, const From* a, const From* b, To* to, std::int64_t count,
                          bool aligned) {
  if constexpr (requires { function.begin(); }) function.begin();
  for (std::int64_t group = thread_number(); group < (count + 3) / 4; group += thread_count()) {
    const bool whole = aligned && 4 * group + 4 <= count;
    const four x = read_four(a, group, count, whole), y = read_four(b, group, count, whole);
    write_four(to, group, count, whole, function(group, x, y));
  }
}

template <class Number>
bool is_aligned(const Number* at) {
  return reinterpret_cast<std::uintptr_t>(at) % sizeof(packed_four<Number>) == 0;
}

template <class From, class To, class Function>
void run_fours(queue on, const Function& function, const From* a, const From* b, To* to, std::int64_t count) {
  const bool aligned = is_aligned(a) && is_aligned(b) && is_aligned(to);
  launch(on, map_fours<Function, From, To>, blocks_for((count + 3) / 4), block_threads, function, a, b, to,
         count, aligned);
}
/// The same, of activations.
template <class Function>
void run_fours(queue on, precision stored, const Function& function, const void* a, const void* b, void* to,
               std::int64_t count) {
  with_number(stored, [&]<class Number>(Number) {
    run_fours(on, function, static_cast<const Number*>(a), static_cast<const Number*>(b),
              static_cast<Number*>(to), count);
  });
}

// ---- rows of channels

/// The columns of four numbers that follow each other in a matrix with rows of `columns`.
struct four_columns {
  std::int64_t at[4];
};
/// Of group `group`. Division is slow, most of all that of 64 bits.
inline __device__ four_columns columns_of_group(std::int64_t group, std::int64_t columns) {
  const std::int64_t first = 4 * group;
  const bool is_short = ((first | columns) >> 32) == 0;
  std::int64_t column =
      is_short ? static_cast<std::uint32_t>(first) % static_cast<std::uint32_t>(columns) : first % columns;
  four_columns out;
  for (auto& one : out.at) {
    one = column;
    column = column + 1 == columns ? 0 : column + 1;
  }
  return out;
}

} // namespace dlrun::kernels::cuda
