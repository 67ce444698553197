/// Runs of columns of a matrix: what joining and selecting channels moves.
#pragma once

#include <cstdint>
#include <span>

namespace dlrun::kernels::cpu {

/// Columns [first, first + count) of a matrix with rows of `width` values.
struct column_run {
  std::int64_t width = 0, first = 0, count = 0;
  bool operator==(const column_run&) const = default;
};

/// `to`(rows, count) = those columns of `from`(rows, width).
void read_columns(const column_run& run, std::span<const float> from, std::span<float> to);

/// Those columns of `to`(rows, width) = `from`(rows, count); the others are left as they are.
void write_columns(const column_run& run, std::span<const float> from, std::span<float> to);

/// sums[c] = the sum of column c of `from`(rows, sums.size()), in double, row after row.
void sum_columns(std::span<const float> from, std::span<float> sums);

/// Adds `row` to each row of `to`(rows, row.size()).
void add_row(std::span<const float> row, std::span<float> to);

} // namespace dlrun::kernels::cpu
