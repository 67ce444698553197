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

/// The channels that lie together: of a block, or all.
std::int64_t together(const pool_geometry& g) { return g.block > 0 ? g.block : g.channels; }

/// A window of `Size` x `Size` pixels, none of them outside the image; otherwise as pool_clipped(). Every
/// size has its own code, in which the maximum of a channel stays in a register. Like those below it is not
/// to be inlined: there GCC forgets that x and y do not overlap, and computes one channel at a time. `Block`:
/// together(g) as a constant, or 0.
template <std::int64_t Size, std::int64_t Block>
[[gnu::noinline]] void pool_whole(const pool_geometry& g, const window& w, const float* __restrict x,
                                  float* __restrict y, std::int32_t* __restrict winner) {
  const auto channels = Block > 0 ? Block : together(g);
  const auto first = static_cast<std::int32_t>(w.row0 * g.width + w.column0);
  for (std::int64_t c = 0; c < channels; ++c) {
    float best = x[first * channels + c];
    std::int32_t where = first;
    for (std::int64_t row = 0; row < Size; ++row)
      for (std::int64_t column = 0; column < Size; ++column) {
        const auto pixel = static_cast<std::int32_t>(first + row * g.width + column);
        const float value = x[pixel * channels + c];
        const bool wins = (value > best) | (value != value);
        best = wins ? value : best;
        where = wins ? pixel : where;
      }
    const bool nothing = g.of_relu & (best <= 0.0F);
    y[c] = nothing ? 0.0F : best;
    winner[c] = nothing ? no_winner : where;
  }
}

/// One window of one image, all channels of a block: `x` is that image, `y` and `winner` the output pixel.
[[gnu::noinline]] void pool_clipped(const pool_geometry& g, const window& w, const float* __restrict x,
                                    float* __restrict y, std::int32_t* __restrict winner) {
  const auto channels = together(g);
  const auto first = static_cast<std::int32_t>(w.row0 * g.width + w.column0);
  const float* const start = x + first * channels;
  for (std::int64_t c = 0; c < channels; ++c) {
    y[c] = start[c];
    winner[c] = first;
  }
  for (std::int64_t row = w.row0; row < w.row1; ++row)
    for (std::int64_t column = w.column0; column < w.column1; ++column) {
      const auto pixel = static_cast<std::int32_t>(row * g.width + column);
      const float* const values = x + pixel * channels;
      for (std::int64_t c = 0; c < channels; ++c) {
        const bool wins = (values[c] > y[c]) | (values[c] != values[c]);
        y[c] = wins ? values[c] : y[c];
        winner[c] = wins ? pixel : winner[c];
      }
    }
  if (!g.of_relu) return;
  for (std::int64_t c = 0; c < channels; ++c) {
    const bool nothing = y[c] <= 0.0F;
    y[c] = nothing ? 0.0F : y[c];
    winner[c] = nothing ? no_winner : winner[c];
  }
}

/// Calls `visit(at_x, at_y, w)` for each window of each block: where the block's image begins in x and its
/// part of the output pixel in y.
template <class Visit>
void each_window(const pool_geometry& g, std::int64_t batch, Visit&& visit) {
  const auto channels = together(g);
  const std::int64_t blocks = g.channels / channels;
  const std::int64_t block_size = g.height * g.width * channels;
  const std::int64_t out_size = g.out_height * g.out_width * g.channels;
  for (std::int64_t n = 0; n < batch; ++n)
    for (std::int64_t block = 0; block < blocks; ++block)
      for (std::int64_t row = 0; row < g.out_height; ++row)
        for (std::int64_t column = 0; column < g.out_width; ++column)
          visit((n * blocks + block) * block_size,
                n * out_size + (row * g.out_width + column) * g.channels + block * channels,
                clip(g, row, column));
}

constexpr std::int64_t usual_block = 16; ///< of oneDNN with AVX-512: has code of its own

/// The side of a window whose size has code of its own, 0 for any other.
std::int64_t whole_size(const pool_geometry& g, const window& w) {
  const bool whole = w.row1 - w.row0 == g.kernel && w.column1 - w.column0 == g.kernel;
  return whole && (g.kernel == 2 || g.kernel == 3) ? g.kernel : 0;
}

void pool_window(const pool_geometry& g, const window& w, const float* x, float* y, std::int32_t* winner) {
  const auto size = whole_size(g, w);
  const bool usual = together(g) == usual_block;
  const auto pool = size == 2   ? usual ? pool_whole<2, usual_block> : pool_whole<2, 0>
                      : size == 3 ? usual ? pool_whole<3, usual_block> : pool_whole<3, 0>
                                  : pool_clipped;
  pool(g, w, x, y, winner);
}

/// A window of `Size` x `Size` pixels that shares none with another: writes its dy to the winners and 0
/// elsewhere.
template <std::int64_t Size, std::int64_t Block>
[[gnu::noinline]] void spread_whole(const pool_geometry& g, const window& w,
                                    const std::int32_t* __restrict winner, const float* __restrict dy,
                                    float* __restrict dx) {
  const auto channels = Block > 0 ? Block : together(g);
  const auto first = static_cast<std::int32_t>(w.row0 * g.width + w.column0);
  for (std::int64_t c = 0; c < channels; ++c) {
    const std::int32_t where = winner[c];
    const float gradient = dy[c];
    for (std::int64_t row = 0; row < Size; ++row)
      for (std::int64_t column = 0; column < Size; ++column) {
        const auto pixel = static_cast<std::int32_t>(first + row * g.width + column);
        dx[pixel * channels + c] = where == pixel ? gradient : 0.0F;
      }
  }
}

/// Adds the window's dy to its winners in the image `dx`; where windows do not overlap it writes instead of
/// adding.
template <bool Overlap>
[[gnu::noinline]] void spread_any(const pool_geometry& g, const window& w,
                                  const std::int32_t* __restrict winner, const float* __restrict dy,
                                  float* __restrict dx) {
  const auto channels = together(g);
  for (std::int64_t row = w.row0; row < w.row1; ++row)
    for (std::int64_t column = w.column0; column < w.column1; ++column) {
      const auto pixel = static_cast<std::int32_t>(row * g.width + column);
      float* const values = dx + pixel * channels;
      for (std::int64_t c = 0; c < channels; ++c) {
        const float share = winner[c] == pixel ? dy[c] : 0.0F;
        values[c] = Overlap ? values[c] + share : share;
      }
    }
}

void spread_window(const pool_geometry& g, const window& w, const std::int32_t* winner, const float* dy,
                   float* dx) {
  const bool overlap = g.stride < g.kernel;
  const auto size = overlap ? 0 : whole_size(g, w);
  const bool usual = together(g) == usual_block;
  const auto spread = size == 2   ? usual ? spread_whole<2, usual_block> : spread_whole<2, 0>
                        : size == 3 ? usual ? spread_whole<3, usual_block> : spread_whole<3, 0>
                        : overlap ? spread_any<true>
                                  : spread_any<false>;
  spread(g, w, winner, dy, dx);
}

} // namespace

void max_pool(const pool_geometry& g, std::int64_t batch, std::span<const float> x, std::span<float> y,
              std::span<std::int32_t> winner) {
  const std::int64_t in_size = g.height * g.width * g.channels;
  const std::int64_t out_size = g.out_height * g.out_width * g.channels;
  DLRUN_CHECK(static_cast<std::int64_t>(x.size()) == batch * in_size &&
                  static_cast<std::int64_t>(y.size()) == batch * out_size && winner.size() == y.size(),
              "max_pool of {} floats to {} with {} winners", x.size(), y.size(), winner.size());
  each_window(g, batch, [&](std::int64_t at_x, std::int64_t at_y, const window& w) {
    pool_window(g, w, x.data() + at_x, y.data() + at_y, winner.data() + at_y);
  });
}

void max_pool_backward(const pool_geometry& g, std::int64_t batch, std::span<const std::int32_t> winner,
                       std::span<const float> dy, std::span<float> dx) {
  const std::int64_t in_size = g.height * g.width * g.channels;
  const std::int64_t out_size = g.out_height * g.out_width * g.channels;
  DLRUN_CHECK(static_cast<std::int64_t>(dx.size()) == batch * in_size &&
                  static_cast<std::int64_t>(dy.size()) == batch * out_size && winner.size() == dy.size(),
              "max_pool_backward of {} floats to {} with {} winners", dy.size(), dx.size(), winner.size());
  // Windows side by side write every pixel themselves when nothing is left over between and behind them.
  const bool tiled = g.stride == g.kernel && g.padding == 0 && g.out_height * g.kernel == g.height &&
                     g.out_width * g.kernel == g.width;
  if (!tiled) std::fill(dx.begin(), dx.end(), 0.0F);
  each_window(g, batch, [&](std::int64_t at_x, std::int64_t at_y, const window& w) {
    spread_window(g, w, winner.data() + at_y, dy.data() + at_y, dx.data() + at_x);
  });
}

} // namespace dlrun::kernels::cpu
