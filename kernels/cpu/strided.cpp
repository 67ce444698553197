#include "kernels/cpu/strided.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <vector>

namespace dlrun::kernels::cpu {
namespace {

/// Rows of a matrix with `wide` floats of whose columns `narrow` floats are the run.
std::size_t rows_of_run(const column_run& run, std::size_t wide, std::size_t narrow) {
  DLRUN_CHECK(run.width >= 1 && run.first >= 0 && run.count >= 1 && run.first + run.count <= run.width,
              "columns {} to {} of {}", run.first, run.first + run.count, run.width);
  const std::size_t rows = wide / static_cast<std::size_t>(run.width);
  DLRUN_CHECK(rows * static_cast<std::size_t>(run.width) == wide &&
                  rows * static_cast<std::size_t>(run.count) == narrow,
              "{} of {} columns of {} floats are not {} floats", run.count, run.width, wide, narrow);
  return rows;
}

} // namespace

void read_columns(const column_run& run, std::span<const float> from, std::span<float> to) {
  const std::size_t rows = rows_of_run(run, from.size(), to.size());
  for (std::size_t r = 0; r < rows; ++r)
    std::copy_n(from.data() + static_cast<std::int64_t>(r) * run.width + run.first, run.count,
                to.data() + static_cast<std::int64_t>(r) * run.count);
}

void write_columns(const column_run& run, std::span<const float> from, std::span<float> to) {
  const std::size_t rows = rows_of_run(run, to.size(), from.size());
  for (std::size_t r = 0; r < rows; ++r)
    std::copy_n(from.data() + static_cast<std::int64_t>(r) * run.count, run.count,
                to.data() + static_cast<std::int64_t>(r) * run.width + run.first);
}

void sum_columns(std::span<const float> from, std::span<float> sums) {
  const std::size_t width = sums.size();
  DLRUN_CHECK(width >= 1 && from.size() % width == 0, "{} floats in rows of {}", from.size(), width);
  std::vector<double> totals(width, 0.0);
  double* const total = totals.data();
  for (std::size_t row = 0; row < from.size(); row += width)
    for (std::size_t c = 0; c < width; ++c) total[c] += static_cast<double>(from[row + c]);
  std::ranges::transform(totals, sums.begin(), [](double value) { return static_cast<float>(value); });
}

void add_row(std::span<const float> row, std::span<float> to) {
  const std::size_t width = row.size();
  DLRUN_CHECK(width >= 1 && to.size() % width == 0, "{} floats in rows of {}", to.size(), width);
  for (std::size_t begin = 0; begin < to.size(); begin += width) {
    float* const out = to.data() + begin;
#pragma GCC ivdep // the row lies elsewhere
    for (std::size_t c = 0; c < width; ++c) out[c] += row[c];
  }
}

} // namespace dlrun::kernels::cpu
