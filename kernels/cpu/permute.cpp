#include "kernels/cpu/permute.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::kernels::cpu {
namespace {

/// One matrix, in tiles that stay in the first-level cache.
void transpose_one(std::int64_t rows, std::int64_t columns, const float* from, float* to) {
  constexpr std::int64_t tile = 16;
  for (std::int64_t r0 = 0; r0 < rows; r0 += tile)
    for (std::int64_t c0 = 0; c0 < columns; c0 += tile) {
      const std::int64_t r1 = std::min(rows, r0 + tile);
      const std::int64_t c1 = std::min(columns, c0 + tile);
      for (std::int64_t c = c0; c < c1; ++c)
        for (std::int64_t r = r0; r < r1; ++r) to[c * rows + r] = from[r * columns + c];
    }
}

} // namespace

void transpose(std::int64_t batch, std::int64_t rows, std::int64_t columns, std::span<const float> from,
               std::span<float> to) {
  const std::int64_t size = rows * columns;
  DLRUN_CHECK(from.size() == to.size() && static_cast<std::int64_t>(from.size()) == batch * size,
              "{} floats cannot be {} matrices of {} x {}", from.size(), batch, rows, columns);
  for (std::int64_t n = 0; n < batch; ++n)
    transpose_one(rows, columns, from.data() + n * size, to.data() + n * size);
}

} // namespace dlrun::kernels::cpu
