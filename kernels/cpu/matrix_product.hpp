/// Products of matrices in AVX2, with sums of a fixed order.
#pragma once

#include "kernels/cpu/aligned_floats.hpp"

#include <cstdint>

namespace dlrun::kernels::cpu {

/// A matrix in caller-owned memory: element (row, column) is data[row * row_step + column *
/// column_step]. One of the steps is 1.
struct matrix_view {
  const float* data;
  std::int64_t row_step, column_step;
};

/// c = a * b. Each element is a chain of fused multiply-adds in the order of `depth`, which begins
/// at 0: its bits depend on nothing else, not on the other sizes nor on the processor. Keeps memory
/// between calls; not to be used by two threads at a time.
class matrix_product {
public:
  /// a (rows, depth), b (depth, columns), c (rows, columns) row by row, overwritten. Sizes are at
  /// least 1.
  void operator()(std::int64_t rows, std::int64_t columns, std::int64_t depth, const matrix_view& a,
                  const matrix_view& b, float* c);

private:
  struct block;
  void pack_tiles(const block& part, const matrix_view& a);
  void multiply_panel(const block& part, const matrix_view& a, const matrix_view& next, std::int64_t columns,
                      float* c, std::int64_t c_step);

  aligned_floats panel_; ///< columns of b, as multiply_tile() wants them
  aligned_floats tiles_; ///< rows of a, where its elements do not lie one after another
};

} // namespace dlrun::kernels::cpu
