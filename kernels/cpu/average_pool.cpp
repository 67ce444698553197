#include "kernels/cpu/average_pool.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::kernels::cpu {
namespace {

/// Calls visit(row window, column window, offset of the output pixel, offset of the image) for each
/// output pixel, in row-major order.
template <class Visit>
void each_window(const average_geometry& g, std::int64_t batch, Visit visit) {
  const std::int64_t in_size = g.height * g.width * g.channels;
  std::int64_t out = 0;
  for (std::int64_t n = 0; n < batch; ++n)
    for (const auto& row : g.rows)
      for (const auto& column : g.columns) {
        visit(row, column, out, n * in_size);
        out += g.channels;
      }
}

/// Calls visit(offset in the image) for each pixel of a window.
template <class Visit>
void each_pixel(const average_geometry& g, const axis_window& row, const axis_window& column, Visit visit) {
  for (std::int64_t i = row.begin; i < row.end; ++i)
    for (std::int64_t j = column.begin; j < column.end; ++j) visit((i * g.width + j) * g.channels);
}

void check_average(const average_geometry& g, std::int64_t batch, std::size_t in, std::size_t out) {
  DLRUN_CHECK(static_cast<std::int64_t>(in) == batch * g.height * g.width * g.channels &&
                  out == static_cast<std::size_t>(batch * g.channels) * g.rows.size() * g.columns.size(),
              "an average pool between {} and {} floats", in, out);
}

} // namespace

std::vector<axis_window> strided_windows(std::int64_t extent, std::int64_t count, std::int64_t kernel,
                                         std::int64_t stride, std::int64_t padding, bool count_padding) {
  std::vector<axis_window> windows;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t first = i * stride - padding, last = std::min(first + kernel, extent + padding);
    const std::int64_t begin = std::max<std::int64_t>(first, 0), end = std::min(last, extent);
    DLRUN_CHECK(begin < end, "window {} of {} pixels lies beside the {} of its axis", i, kernel, extent);
    windows.push_back({begin, end, count_padding ? last - first : end - begin});
  }
  return windows;
}

std::vector<axis_window> adaptive_windows(std::int64_t extent, std::int64_t count) {
  std::vector<axis_window> windows;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t begin = i * extent / count, end = ((i + 1) * extent + count - 1) / count;
    windows.push_back({begin, end, end - begin});
  }
  return windows;
}

void average_pool(const average_geometry& g, std::int64_t batch, std::span<const float> x,
                  std::span<float> y) {
  check_average(g, batch, x.size(), y.size());
  std::vector<double> sums(static_cast<std::size_t>(g.channels));
  double* const sum = sums.data();
  each_window(g, batch, [&](const axis_window& row, const axis_window& column, std::int64_t out, auto image) {
    std::ranges::fill(sums, 0.0);
    each_pixel(g, row, column, [&](std::int64_t pixel) {
      const float* const values = x.data() + image + pixel;
      for (std::int64_t c = 0; c < g.channels; ++c) sum[c] += static_cast<double>(values[c]);
    });
    const auto divisor = static_cast<double>(row.divisor * column.divisor);
    for (std::int64_t c = 0; c < g.channels; ++c)
      y[static_cast<std::size_t>(out + c)] = static_cast<float>(sum[c] / divisor);
  });
}

void average_pool_backward(const average_geometry& g, std::int64_t batch, std::span<const float> dy,
                           std::span<float> dx) {
  check_average(g, batch, dx.size(), dy.size());
  std::ranges::fill(dx, 0.0F);
  each_window(g, batch, [&](const axis_window& row, const axis_window& column, std::int64_t out, auto image) {
    const float* const gradient = dy.data() + out;
    const auto divisor = static_cast<float>(row.divisor * column.divisor);
    each_pixel(g, row, column, [&](std::int64_t pixel) {
      float* const values = dx.data() + image + pixel;
#pragma GCC ivdep // dy and dx are disjoint
      for (std::int64_t c = 0; c < g.channels; ++c) values[c] += gradient[c] / divisor;
    });
  });
}

} // namespace dlrun::kernels::cpu
