/// Means over windows of an image, channels innermost.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dlrun::kernels::cpu {

/// A window along one axis: pixels [begin, end) of the input, at least one. What its sum is divided
/// by is the product of the divisors of both axes.
struct axis_window {
  std::int64_t begin, end, divisor;
};

/// `count` windows of `kernel` pixels at every `stride`-th place, from `padding` zeros before the
/// first pixel on; `padding` is at most half of `kernel`. The divisor is the size of the window: of
/// the part on pixels and padding, or with `count_padding` false on pixels alone, as in
/// torch.nn.AvgPool2d.
std::vector<axis_window> strided_windows(std::int64_t extent, std::int64_t count, std::int64_t kernel,
                                         std::int64_t stride, std::int64_t padding, bool count_padding);

/// `count` windows that cover all pixels: window i is [floor(i extent / count), ceil((i + 1) extent
/// / count)), as in torch.nn.AdaptiveAvgPool2d.
std::vector<axis_window> adaptive_windows(std::int64_t extent, std::int64_t count);

/// The outputs are the windows of the rows times those of the columns.
struct average_geometry {
  std::int64_t channels = 0, height = 0, width = 0; ///< of an input record
  std::vector<axis_window> rows, columns;
};

/// x is (batch, height, width, channels), y (batch, rows, columns, channels). Sums are taken in
/// double, pixel after pixel.
void average_pool(const average_geometry& geometry, std::int64_t batch, std::span<const float> x,
                  std::span<float> y);

/// dx = each dy divided and added to the pixels of its window, windows in row-major order. dx is
/// overwritten.
void average_pool_backward(const average_geometry& geometry, std::int64_t batch, std::span<const float> dy,
                           std::span<float> dx);

} // namespace dlrun::kernels::cpu
