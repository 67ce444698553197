/// Gradient of a convolution's weights in AVX2, with sums of a fixed order.
#pragma once

#include "kernels/cpu/aligned_floats.hpp"
#include "kernels/cpu/convolution_geometry.hpp"

#include <cstdint>
#include <vector>

namespace dlrun::kernels::cpu {

/// dw and db of a convolution of a fixed geometry. Each element of dw is a chain of fused
/// multiply-adds over the records and the pixels of their outputs, row by row, which begins at 0
/// and takes the padding as zeros; db sums rows of pixels in float, and those in double. The bits
/// depend on nothing else. Keeps memory between calls; not to be used by two threads at a time.
class weights_gradient {
public:
  explicit weights_gradient(const convolution_geometry& geometry);

  /// x (batch, height, width, in_channels); dy (batch, out_channels / block, out_height, out_width,
  /// block), whose `block` is out_channels or whole vectors of 8. dw as the weights of
  /// `convolution`, and db: overwritten. db is ignored without bias.
  void operator()(std::int64_t batch, const float* x, const float* dy, std::int64_t block, float* dw,
                  float* db);

private:
  void pad(const float* x);
  void pack_row(const float* dy, std::int64_t block, std::int64_t row, std::int64_t at);
  void multiply(std::int64_t first_row, std::int64_t rows, bool adds);
  void write(float* dw, float* db) const;

  convolution_geometry geometry_;
  std::int64_t padded_height_, padded_width_;
  std::int64_t channels_, blocks_; ///< of x that lie together, and how many such blocks there are
  std::int64_t panels_;            ///< of the channels of dy
  std::int64_t chunk_rows_;        ///< rows of pixels that are summed at once
  std::vector<std::int64_t> rows_; ///< of dw: where in a padded record, for each tap and channel of x
  aligned_floats x_;               ///< a padded record, block by block; the padding stays 0
  aligned_floats dy_;              ///< a chunk, panel by panel
  aligned_floats dw_;              ///< rows_ times the channels of a panel, panel by panel
  std::vector<double> db_;
};

} // namespace dlrun::kernels::cpu
