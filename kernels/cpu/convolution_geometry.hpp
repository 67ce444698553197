/// What all parts of a convolution know of it.
#pragma once

#include <cstdint>

namespace dlrun::kernels::cpu {

/// Geometry of a convolution with square kernel, and equal stride and zero padding on both axes;
/// or, `flat`, of one along the width of images of height 1.
struct convolution_geometry {
  std::int64_t in_channels = 0, height = 0, width = 0; ///< of an input record
  std::int64_t out_channels = 0, out_height = 0, out_width = 0;
  std::int64_t kernel = 1, stride = 1, padding = 0;
  bool bias = true;
  bool flat = false;

  std::int64_t kernel_height() const { return flat ? 1 : kernel; }
  std::int64_t stride_height() const { return flat ? 1 : stride; }
  std::int64_t padding_height() const { return flat ? 0 : padding; }
  bool operator==(const convolution_geometry&) const = default;
};

} // namespace dlrun::kernels::cpu
