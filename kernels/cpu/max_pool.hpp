/// Maximum over square windows of an image, channels innermost; or in blocks of them, as oneDNN may
/// want.
#pragma once

#include <cstdint>
#include <span>

namespace dlrun::kernels::cpu {

/// Square window, equal stride and padding on both axes; padding counts as -infinity and is at most
/// half the window.
struct pool_geometry {
  std::int64_t channels = 0, height = 0, width = 0; ///< of an input record
  std::int64_t out_height = 0, out_width = 0;
  std::int64_t kernel = 1, stride = 1, padding = 0;
  bool of_relu = false;   ///< pools relu(x): the same bits as relu and then the pool, and the same dx
  std::int64_t block = 0; ///< x is (batch, channels / block, height, width, block); 0: all channels together
  bool operator==(const pool_geometry&) const = default;
};

/// Winner of a window in which relu left nothing: dy goes nowhere.
constexpr std::int32_t no_winner = -1;

/// x is (batch, height, width, channels), unless `block` says otherwise; y and `winner` (batch,
/// out_height, out_width, channels). `winner` gets the input pixel (row * width + column) of each
/// maximum: the first of equals in row-major order, a NaN before all, as in PyTorch.
void max_pool(const pool_geometry& geometry, std::int64_t batch, std::span<const float> x, std::span<float> y,
              std::span<std::int32_t> winner);

/// dx = each dy added to its winner, windows in row-major order. dx is overwritten.
void max_pool_backward(const pool_geometry& geometry, std::int64_t batch,
                       std::span<const std::int32_t> winner, std::span<const float> dy, std::span<float> dx);

} // namespace dlrun::kernels::cpu
