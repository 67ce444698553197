#include "kernels/cpu/max_pool.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::kernels::cpu {
namespace {

/// The part of a window that lies inside the image: rows [row0, row1), columns [column0, column1).
struct window {
  std::int64_t row0, row1, column0, column1;
};

/// Windows side by side in an image, each `stride` pixels on from the one before.
struct run {
  std::int64_t first_pixel; ///< of the first window
  std::int64_t count;
};

window clip(const pool_geometry& g, std::int64_t out_row, std::int64_t out_column) {
  const std::int64_t row = out_row * g.stride - g.padding;
  const std::int64_t column = out_column * g.stride - g.padding;
  return {std::max<std::int64_t>(row, 0), std::min(row + g.kernel, g.height),
          std::max<std::int64_t>(column, 0), std::min(column + g.kernel, g.width)};
}

/// The channels that lie together: of a block, or all.
std::int64_t together(const pool_geometry& g) { return g.block > 0 ? g.block : g.channels; }

/// Windows side by side, of `Size` x `Size` pixels each and none of them outside the image;
/// otherwise as pool_clipped(). Every size has its own code, in which the maximum of a channel
/// stays in a register. Like those below it is not to be inlined: there GCC forgets that x and y do
/// not overlap, and computes one channel at a time. `Block`: together(g) as a constant, or 0.
template <std::int64_t Size, std::int64_t Block>
[[gnu::noinline]] void pool_whole(const pool_geometry& g, const run& windows, const float* __restrict x,
                                  float* __restrict y, std::int32_t* __restrict winner) {
  const auto channels = Block > 0 ? Block : together(g);
  const auto width = g.width;
  const bool of_relu = g.of_relu;
  for (std::int64_t i = 0; i < windows.count; ++i) {
    const auto first = static_cast<std::int32_t>(windows.first_pixel + i * g.stride);
    float* __restrict const out = y + i * g.channels;
    std::int32_t* __restrict const out_winner = winner + i * g.channels;
    for (std::int64_t c = 0; c < channels; ++c) {
      float best = x[first * channels + c];
      std::int32_t where = first;
      for (std::int64_t row = 0; row < Size; ++row)
        for (std::int64_t column = 0; column < Size; ++column) {
          const auto pixel = static_cast<std::int32_t>(first + row * width + column);
          const float value = x[pixel * channels + c];
          const bool wins = (value > best) | (value != value);
          best = wins ? value : best;
          where = wins ? pixel : where;
        }
      const bool nothing = of_relu & (best <= 0.0F);
      out[c] = nothing ? 0.0F : best;
      out_winner[c] = nothing ? no_winner : where;
    }
  }
}

/// One window of one image, all channels of a block: `x` is that image, `y` and `winner` the output
/// pixel.
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

/// Where the image of a block begins in x, and a pixel of its part in y.
struct place {
  std::int64_t x, y;
};

constexpr std::int64_t usual_block = 16; ///< of oneDNN with AVX-512: has code of its own

/// Whether there is code for windows that lie wholly in the image.
bool has_whole_code(const pool_geometry& g) { return g.kernel == 2 || g.kernel == 3; }

/// The windows of a row that lie wholly in the image, from left to right: [first, last).
struct whole_columns {
  std::int64_t first, last;
};
whole_columns whole_in_row(const pool_geometry& g, std::int64_t row) {
  const auto w = clip(g, row, 0);
  if (!has_whole_code(g) || w.row1 - w.row0 != g.kernel) return {0, 0};
  const std::int64_t first = (g.padding + g.stride - 1) / g.stride;
  const std::int64_t fitting = g.width + g.padding - g.kernel;
  const std::int64_t last = fitting < 0 ? 0 : std::min(fitting / g.stride + 1, g.out_width);
  return {first, std::max(first, last)};
}

/// Calls `visit_whole(at, windows)` for the windows of each row of each block that lie wholly in
/// the image, where there is code for them and `whole_apart` asks for it, and `visit_other(at, w)`
/// for each other window.
template <class VisitWhole, class VisitOther>
void each_row(const pool_geometry& g, std::int64_t batch, bool whole_apart, VisitWhole&& visit_whole,
              VisitOther&& visit_other) {
  const auto channels = together(g);
  const std::int64_t blocks = g.channels / channels;
  const std::int64_t block_size = g.height * g.width * channels;
  const std::int64_t out_size = g.out_height * g.out_width * g.channels;
  for (std::int64_t n = 0; n < batch; ++n)
    for (std::int64_t block = 0; block < blocks; ++block)
      for (std::int64_t row = 0; row < g.out_height; ++row) {
        const auto whole = whole_apart ? whole_in_row(g, row) : whole_columns{0, 0};
        const auto at = [&](std::int64_t column) {
          return place{(n * blocks + block) * block_size,
                       n * out_size + (row * g.out_width + column) * g.channels + block * channels};
        };
        for (std::int64_t column = 0; column < whole.first; ++column)
          visit_other(at(column), clip(g, row, column));
        if (whole.first < whole.last) {
          const auto w = clip(g, row, whole.first);
          visit_whole(at(whole.first), run{w.row0 * g.width + w.column0, whole.last - whole.first});
        }
        for (std::int64_t column = whole.last; column < g.out_width; ++column)
          visit_other(at(column), clip(g, row, column));
      }
}

/// Windows side by side, of `Size` x `Size` pixels each, that share none with another: writes their
/// dy to the winners and 0 elsewhere.
template <std::int64_t Size, std::int64_t Block>
[[gnu::noinline]] void spread_whole(const pool_geometry& g, const run& windows,
                                    const std::int32_t* __restrict winner, const float* __restrict dy,
                                    float* __restrict dx) {
  const auto channels = Block > 0 ? Block : together(g);
  const auto width = g.width;
  for (std::int64_t i = 0; i < windows.count; ++i) {
    const auto first = static_cast<std::int32_t>(windows.first_pixel + i * g.stride);
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int32_t where = winner[i * g.channels + c];
      const float gradient = dy[i * g.channels + c];
      for (std::int64_t row = 0; row < Size; ++row)
        for (std::int64_t column = 0; column < Size; ++column) {
          const auto pixel = static_cast<std::int32_t>(first + row * width + column);
          dx[pixel * channels + c] = where == pixel ? gradient : 0.0F;
        }
    }
  }
}

/// Adds the window's dy to its winners in the image `dx`; where windows do not overlap it writes
/// instead of adding.
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

/// The code for windows that lie wholly in the image; `has_whole_code(g)`.
auto pool_code(const pool_geometry& g) {
  const bool usual = together(g) == usual_block;
  return g.kernel == 2 ? usual ? pool_whole<2, usual_block> : pool_whole<2, 0>
         : usual ? pool_whole<3, usual_block>
                       : pool_whole<3, 0>;
}

auto spread_code(const pool_geometry& g) {
  const bool usual = together(g) == usual_block;
  return g.kernel == 2 ? usual ? spread_whole<2, usual_block> : spread_whole<2, 0>
         : usual ? spread_whole<3, usual_block>
                       : spread_whole<3, 0>;
}

} // namespace

void max_pool(const pool_geometry& g, std::int64_t batch, std::span<const float> x, std::span<float> y,
              std::span<std::int32_t> winner) {
  const std::int64_t in_size = g.height * g.width * g.channels;
  const std::int64_t out_size = g.out_height * g.out_width * g.channels;
  DLRUN_CHECK(static_cast<std::int64_t>(x.size()) == batch * in_size &&
                  static_cast<std::int64_t>(y.size()) == batch * out_size && winner.size() == y.size(),
              "max_pool of {} floats to {} with {} winners", x.size(), y.size(), winner.size());
  const auto whole = pool_code(g);
  each_row(
      g, batch, true,
      [&](const place& at, const run& windows) {
        whole(g, windows, x.data() + at.x, y.data() + at.y, winner.data() + at.y);
      },
      [&](const place& at, const window& w) {
        pool_clipped(g, w, x.data() + at.x, y.data() + at.y, winner.data() + at.y);
      });
}

void max_pool_backward(const pool_geometry& g, std::int64_t batch, std::span<const std::int32_t> winner,
                       std::span<const float> dy, std::span<float> dx) {
  const std::int64_t in_size = g.height * g.width * g.channels;
  const std::int64_t out_size = g.out_height * g.out_width * g.channels;
  DLRUN_CHECK(static_cast<std::int64_t>(dx.size()) == batch * in_size &&
                  static_cast<std::int64_t>(dy.size()) == batch * out_size && winner.size() == dy.size(),
              "max_pool_backward of {} floats to {} with {} winners", dy.size(), dx.size(), winner.size());
  // Windows side by side write every pixel themselves when nothing is left over between and behind
  // them.
  const bool tiled = g.stride == g.kernel && g.padding == 0 && g.out_height * g.kernel == g.height &&
                     g.out_width * g.kernel == g.width;
  if (!tiled) std::fill(dx.begin(), dx.end(), 0.0F);
  const bool overlap = g.stride < g.kernel;
  const auto whole = spread_code(g);
  const auto any = overlap ? spread_any<true> : spread_any<false>;
  each_row(
      g, batch, !overlap,
      [&](const place& at, const run& windows) {
        whole(g, windows, winner.data() + at.y, dy.data() + at.y, dx.data() + at.x);
      },
      [&](const place& at, const window& w) {
        any(g, w, winner.data() + at.y, dy.data() + at.y, dx.data() + at.x);
      });
}

} // namespace dlrun::kernels::cpu
