/// Kernels that make each float of a vector from those at the same place of others: four floats at
/// a time, which is what memory gives at once.
#pragma once

#include "kernels/cuda/device.hpp"

#include <cstdint>

namespace dlrun::kernels::cuda {

/// Floats that are read and written at once: with one access where they are aligned as they ask.
struct alignas(16) four {
  float v[4];
};

/// Numbers 4 group to 4 group + 3 of `from`, of `count`; 0 where there are none, all where `from`
/// is null.
inline __device__ four read_four(const float* from, std::int64_t group, std::int64_t count, bool whole) {
  four out{};
  if (from == nullptr) return out;
  if (whole) return reinterpret_cast<const four*>(from)[group];
  for (std::int64_t k = 0; k < 4 && 4 * group + k < count; ++k) out.v[k] = from[4 * group + k];
  return out;
}

inline __device__ void write_four(float* to, std::int64_t group, std::int64_t count, bool whole,
                                  const four& values) {
  if (whole)
    reinterpret_cast<four*>(to)[group] = values;
  else
    for (std::int64_t k = 0; k < 4 && 4 * group + k < count; ++k) to[4 * group + k] = values.v[k];
}

/// `to` = function(group, four of a, four of b), for all groups of four. `a` and `b` may be null,
/// or `to`.
template <class Function>
__global__ void map_fours(Function function, const float* a, const float* b, float* to, std::int64_t count,
                          bool aligned) {
  for (std::int64_t group = thread_number(); group < (count + 3) / 4; group += thread_count()) {
    const bool whole = aligned && 4 * group + 4 <= count;
    const four x = read_four(a, group, count, whole), y = read_four(b, group, count, whole);
    write_four(to, group, count, whole, function(group, x, y));
  }
}

inline bool is_aligned(const float* at) { return reinterpret_cast<std::uintptr_t>(at) % sizeof(four) == 0; }

template <class Function>
void run_fours(queue on, const Function& function, const float* a, const float* b, float* to,
               std::int64_t count) {
  const bool aligned = is_aligned(a) && is_aligned(b) && is_aligned(to);
  launch(on, map_fours<Function>, blocks_for((count + 3) / 4), block_threads, function, a, b, to, count,
         aligned);
}

// ---- rows of channels

/// The columns of four floats that follow each other in a matrix with rows of `columns`.
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
