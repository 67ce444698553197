#include "kernels/cpu/max_pool.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::kernels::cpu {
namespace {

/// The part of a window that lies inside the image: rows [row0, row1), columns [column0, column1).
struct window {
  std::int64_t row0, row1, column0, column1;
};

window clip(const pool_geometry& g, std::int64_t out_row, std::int64_t out_column) {
  const std::int64_t row = out_row * g.stride - g.padding;
  const std::int64_t column = out_column * g.stride - g.padding;
  return {std::max<std::int64_t>(row, 0), std::min(row + g.kernel, g.height),
          std::max<std::int64_t>(column, 0), std::min(column + g.kernel, g.width)};
}

/// A window of `Size` x `Size` pixels, none of them outside the image; otherwise as pool_clipped(). Every
/// size has its own code, in which the maximum of a channel stays in a register.
template <std::int64_t Size>
void pool_whole(const pool_geometry& g, const window& w, const float* __restrict x, float* __restrict y,
                std::int32_t* __restrict winner) {
  const auto first = static_cast<std::int32_t>(w.row0 * g.width + w.column0);
  for (std::int64_t c = 0; c < g.channels; ++c) {
    float best = x[first * g.channels + c];
    std::int32_t where = first;
    for (std::int64_t row = 0; row < Size; ++row)
      for (std::int64_t column = 0; column < Size; ++column) {
        const auto pixel = static_cast<std::int32_t>(first + row * g.width + column);
        const float value = x[pixel * g.channels + c];
        const bool wins = (value > best) | (value != value);
        best = wins ? value : best;
        where = wins ? pixel : where;
      }
    y[c] = best;
    winner[c] = where;
  }
}

/// One window of one image, all channels: `x` is that image, `y` and `winner` the output pixel.
void pool_clipped(const pool_geometry& g, const window& w, const float* __restrict x, float* __restrict y,
                  std::int32_t* __restrict winner) {
  const auto first = static_cast<std::int32_t>(w.row0 * g.width + w.column0);
  const float* const start = x + first * g.channels;
  for (std::int64_t c = 0; c < g.channels; ++c) {
    y[c] = start[c];
    winner[c] = first;
  }
  for (std::int64_t row = w.row0; row < w.row1; ++row)
    for (std::int64_t column = w.column0; column < w.column1; ++column) {
      const auto pixel = static_cast<std::int32_t>(row * g.width + column);
      const float* const values = x + pixel * g.channels;
      for (std::int64_t c = 0; c < g.channels; ++c) {
        const bool wins = (values[c] > y[c]) | (values[c] != values[c]);
        y[c] = wins ? values[c] : y[c];
        winner[c] = wins ? pixel : winner[c];
      }
    }
}

void pool_window(const pool_geometry& g, const window& w, const float* x, float* y, std::int32_t* winner) {
  const bool whole = w.row1 - w.row0 == g.kernel && w.column1 - w.column0 == g.kernel;
  if (whole && g.kernel == 2)
    pool_whole<2>(g, w, x, y, winner);
  else if (whole && g.kernel == 3)
    pool_whole<3>(g, w, x, y, winner);
  else
    pool_clipped(g, w, x, y, winner);
  if (!g.of_relu) return;
  for (std::int64_t c = 0; c < g.channels; ++c) {
    const bool nothing = y[c] <= 0.0F;
    y[c] = nothing ? 0.0F : y[c];
    winner[c] = nothing ? no_winner : winner[c];
  }
}

/// Adds the window's dy to its winners in the image `dx`; where windows do not overlap it writes instead of
/// adding.
template <bool Overlap>
void spread_window(const pool_geometry& g, const window& w, const std::int32_t* __restrict winner,
                   const float* __restrict dy, float* __restrict dx) {
  for (std::int64_t row = w.row0; row < w.row1; ++row)
    for (std::int64_t column = w.column0; column < w.column1; ++column) {
      const auto pixel = static_cast<std::int32_t>(row * g.width + column);
      float* const values = dx + pixel * g.channels;
      for (std::int64_t c = 0; c < g.channels; ++c) {
        const float share = winner[c] == pixel ? dy[c] : 0.0F;
        values[c] = Overlap ? values[c] + share : share;
      }
    }
}

} // namespace

void max_pool(const pool_geometry& g, std::int64_t batch, std::span<const float> x, std::span<float> y,
              std::span<std::int32_t> winner) {
  const std::int64_t in_size = g.height * g.width * g.channels;
  const std::int64_t out_size = g.out_height * g.out_width * g.channels;
  DLRUN_CHECK(static_cast<std::int64_t>(x.size()) == batch * in_size &&
                  static_cast<std::int64_t>(y.size()) == batch * out_size && winner.size() == y.size(),
              "max_pool of {} floats to {} with {} winners", x.size(), y.size(), winner.size());
  for (std::int64_t n = 0; n < batch; ++n)
    for (std::int64_t row = 0; row < g.out_height; ++row)
      for (std::int64_t column = 0; column < g.out_width; ++column) {
        const std::int64_t out = n * out_size + (row * g.out_width + column) * g.channels;
        pool_window(g, clip(g, row, column), x.data() + n * in_size, y.data() + out, winner.data() + out);
      }
}

void max_pool_backward(const pool_geometry& g, std::int64_t batch, std::span<const std::int32_t> winner,
                       std::span<const float> dy, std::span<float> dx) {
  const std::int64_t in_size = g.height * g.width * g.channels;
  const std::int64_t out_size = g.out_height * g.out_width * g.channels;
  DLRUN_CHECK(static_cast<std::int64_t>(dx.size()) == batch * in_size &&
                  static_cast<std::int64_t>(dy.size()) == batch * out_size && winner.size() == dy.size(),
              "max_pool_backward of {} floats to {} with {} winners", dy.size(), dx.size(), winner.size());
  const bool overlap = g.stride < g.kernel;
  // Windows side by side write every pixel themselves when nothing is left over between and behind them.
  const bool tiled = g.stride == g.kernel && g.padding == 0 && g.out_height * g.kernel == g.height &&
                     g.out_width * g.kernel == g.width;
  if (!tiled) std::fill(dx.begin(), dx.end(), 0.0F);
  for (std::int64_t n = 0; n < batch; ++n)
    for (std::int64_t row = 0; row < g.out_height; ++row)
      for (std::int64_t column = 0; column < g.out_width; ++column) {
        const std::int64_t out = n * out_size + (row * g.out_width + column) * g.channels;
        const auto spread = overlap ? spread_window<true> : spread_window<false>;
        spread(g, clip(g, row, column), winner.data() + out, dy.data() + out, dx.data() + n * in_size);
      }
}

} // namespace dlrun::kernels::cpu
