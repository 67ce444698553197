#include "kernels/cuda/pool.hpp"

#include "kernels/cuda/bf16.hpp"

namespace dlrun::kernels::cuda {
namespace {

/// A value of a batch of images, channels innermost.
struct place {
  std::int64_t record, row, column, channel;
};

__device__ place place_of(std::int64_t i, std::int64_t height, std::int64_t width, std::int64_t channels) {
  const std::int64_t pixel = i / channels;
  return {pixel / (height * width), pixel / width % height, pixel % width, i % channels};
}

__device__ std::int64_t larger(std::int64_t a, std::int64_t b) { return a > b ? a : b; }
__device__ std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

/// The first of equals in row-major order wins; a NaN before all, and of NaNs the last, as in
/// kernels/cpu/max_pool.cpp.
template <class Number>
__global__ void max_pool_each(max_pool_forward s) {
  const auto& g = s.geometry;
  const std::int64_t count = s.batch * g.out_height * g.out_width * g.channels;
  for (std::int64_t i = thread_number(); i < count; i += thread_count()) {
    const place at = place_of(i, g.out_height, g.out_width, g.channels);
    const std::int64_t row = at.row * g.stride - g.padding, column = at.column * g.stride - g.padding;
    const std::int64_t row0 = larger(row, 0), row1 = smaller(row + g.kernel, g.height);
    const std::int64_t column0 = larger(column, 0), column1 = smaller(column + g.kernel, g.width);
    const Number* const x =
        static_cast<const Number*>(s.x) + at.record * g.height * g.width * g.channels + at.channel;
    std::int64_t winner = row0 * g.width + column0;
    float best = widened(x[winner * g.channels]);
    for (std::int64_t r = row0; r < row1; ++r)
      for (std::int64_t c = column0; c < column1; ++c) {
        const std::int64_t pixel = r * g.width + c;
        const float value = widened(x[pixel * g.channels]);
        const bool wins = value > best || value != value;
        best = wins ? value : best;
        winner = wins ? pixel : winner;
      }
    static_cast<Number*>(s.y)[i] = stored_as<Number>(best);
    s.winner[i] = static_cast<std::int32_t>(winner);
  }
}

/// Windows [first, last) of an axis that may hold pixel `pixel`.
struct window_range {
  std::int64_t first, last;
};
__device__ window_range windows_with(std::int64_t pixel, const cpu::pool_geometry& g, std::int64_t windows) {
  const std::int64_t before =
      pixel + g.padding - g.kernel; // the last place too early for a window to hold it
  return {before < 0 ? 0 : before / g.stride + 1, smaller((pixel + g.padding) / g.stride + 1, windows)};
}

template <class Number>
__global__ void max_pool_backward_each(max_pool_backward s) {
  const auto& g = s.geometry;
  const std::int64_t count = s.batch * g.height * g.width * g.channels;
  const bool overlap = g.stride < g.kernel;
  const auto* const dy = static_cast<const Number*>(s.dy);
  for (std::int64_t i = thread_number(); i < count; i += thread_count()) {
    const place at = place_of(i, g.height, g.width, g.channels);
    const auto pixel = static_cast<std::int32_t>(at.row * g.width + at.column);
    const window_range rows = windows_with(at.row, g, g.out_height);
    const window_range columns = windows_with(at.column, g, g.out_width);
    const std::int64_t image = at.record * g.out_height * g.out_width;
    float sum = 0.0F;
    for (std::int64_t r = rows.first; r < rows.last; ++r)
      for (std::int64_t c = columns.first; c < columns.last; ++c) {
        const std::int64_t window = (image + r * g.out_width + c) * g.channels + at.channel;
        const float share = s.winner[window] == pixel ? widened(dy[window]) : 0.0F;
        sum = overlap ? sum + share : share; // -0 + 0 would be 0: the twin adds only where windows overlap
      }
    static_cast<Number*>(s.dx)[i] = stored_as<Number>(sum);
  }
}

template <class Number>
__global__ void average_pool_each(average_pool_forward s) {
  const auto& w = s.windows;
  const std::int64_t count = s.batch * w.row_count * w.column_count * w.channels;
  for (std::int64_t i = thread_number(); i < count; i += thread_count()) {
    const place at = place_of(i, w.row_count, w.column_count, w.channels);
    const cpu::axis_window row = w.rows[at.row], column = w.columns[at.column];
    const Number* const x =
        static_cast<const Number*>(s.x) + at.record * w.height * w.width * w.channels + at.channel;
    double sum = 0.0;
    for (std::int64_t r = row.begin; r < row.end; ++r)
      for (std::int64_t c = column.begin; c < column.end; ++c)
        sum += static_cast<double>(widened(x[(r * w.width + c) * w.channels]));
    static_cast<Number*>(s.y)[i] =
        stored_as<Number>(static_cast<float>(sum / static_cast<double>(row.divisor * column.divisor)));
  }
}

__device__ bool holds(const cpu::axis_window& window, std::int64_t pixel) {
  return window.begin <= pixel && pixel < window.end;
}

/// The first window of an axis that ends behind `pixel`: neither begins nor ends of windows ever go
/// back from one to the next.
__device__ std::int64_t first_behind(const cpu::axis_window* windows, std::int64_t count,
                                     std::int64_t pixel) {
  std::int64_t low = 0, high = count;
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (windows[middle].end > pixel)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

template <class Number>
__global__ void average_pool_backward_each(average_pool_backward s) {
  const auto& w = s.windows;
  const std::int64_t count = s.batch * w.height * w.width * w.channels;
  const auto* const dy = static_cast<const Number*>(s.dy);
  for (std::int64_t i = thread_number(); i < count; i += thread_count()) {
    const place at = place_of(i, w.height, w.width, w.channels);
    const std::int64_t row0 = first_behind(w.rows, w.row_count, at.row);
    const std::int64_t column0 = first_behind(w.columns, w.column_count, at.column);
    const std::int64_t image = at.record * w.row_count * w.column_count;
    float sum = 0.0F;
    for (std::int64_t r = row0; r < w.row_count && holds(w.rows[r], at.row); ++r)
      for (std::int64_t c = column0; c < w.column_count && holds(w.columns[c], at.column); ++c) {
        const auto divisor = static_cast<float>(w.rows[r].divisor * w.columns[c].divisor);
        sum += widened(dy[(image + r * w.column_count + c) * w.channels + at.channel]) / divisor;
      }
    static_cast<Number*>(s.dx)[i] = stored_as<Number>(sum);
  }
}

} // namespace

void run(queue on, precision stored, const max_pool_forward& what) {
  const auto& g = what.geometry;
  const std::int64_t blocks = blocks_for(what.batch * g.out_height * g.out_width * g.channels);
  with_number(stored,
              [&]<class Number>(Number) { launch(on, max_pool_each<Number>, blocks, block_threads, what); });
}

void run(queue on, precision stored, const max_pool_backward& what) {
  const auto& g = what.geometry;
  const std::int64_t blocks = blocks_for(what.batch * g.height * g.width * g.channels);
  with_number(stored, [&]<class Number>(Number) {
    launch(on, max_pool_backward_each<Number>, blocks, block_threads, what);
  });
}

void run(queue on, precision stored, const average_pool_forward& what) {
  const auto& w = what.windows;
  const std::int64_t blocks = blocks_for(what.batch * w.row_count * w.column_count * w.channels);
  with_number(stored, [&]<class Number>(Number) {
    launch(on, average_pool_each<Number>, blocks, block_threads, what);
  });
}

void run(queue on, precision stored, const average_pool_backward& what) {
  const auto& w = what.windows;
  const std::int64_t blocks = blocks_for(what.batch * w.height * w.width * w.channels);
  with_number(stored, [&]<class Number>(Number) {
    launch(on, average_pool_backward_each<Number>, blocks, block_threads, what);
  });
}

} // namespace dlrun::kernels::cuda
