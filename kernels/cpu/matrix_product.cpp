#include "kernels/cpu/matrix_product.hpp"

#include "kernels/cpu/tile.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::kernels::cpu {
namespace {

using vector = floats8;
constexpr std::int64_t panel_columns = tile_columns<vector>;

// A panel of this depth takes half of a first-level cache of 32 KiB; rows of a of this many, a
// quarter of a second-level cache of 1 MiB.
constexpr std::int64_t depth_max = 256;
constexpr std::int64_t rows_max = 256;

/// Eight rows of eight floats, `from_step` apart, as eight columns, `to_step` apart.
void transpose_square(const float* from, std::int64_t from_step, float* to, std::int64_t to_step) {
  std::array<floats8, 8> in, pairs, fours;
  unrolled<8>([&](auto i) { in[i] = floats8::load(from + static_cast<std::int64_t>(i()) * from_step); });
  unrolled<4>([&](auto i) {
    pairs[2 * i] = {_mm256_unpacklo_ps(in[2 * i].value, in[2 * i + 1].value)};
    pairs[2 * i + 1] = {_mm256_unpackhi_ps(in[2 * i].value, in[2 * i + 1].value)};
  });
  unrolled<2>([&](auto half) {
    unrolled<2>([&](auto i) {
      constexpr auto at = 4 * half() + i();
      const auto a = pairs[at].value, b = pairs[at + 2].value;
      fours[4 * half + 2 * i] = {_mm256_shuffle_ps(a, b, 0x44)};
      fours[4 * half + 2 * i + 1] = {_mm256_shuffle_ps(a, b, 0xee)};
    });
  });
  unrolled<4>([&](auto i) {
    const auto at = static_cast<std::int64_t>(i());
    const auto upper = fours[i].value, lower = fours[i + 4].value;
    floats8{_mm256_permute2f128_ps(upper, lower, 0x20)}.store(to + at * to_step);
    floats8{_mm256_permute2f128_ps(upper, lower, 0x31)}.store(to + (at + 4) * to_step);
  });
}

/// Rows `depth` of a panel: `columns` columns of b, and zeros up to panel_columns.
void pack_panel(const matrix_view& b, std::int64_t depth, std::int64_t columns, float* panel) {
  const bool whole = columns == panel_columns;
  std::int64_t k = 0;
  if (whole && b.column_step == 1)
    for (; k < depth; ++k)
      unrolled<2>([&](auto half) {
        const auto at = static_cast<std::int64_t>(half() * vector::lanes);
        vector::load(b.data + k * b.row_step + at).store(panel + k * panel_columns + at);
      });
  else if (whole)
    for (; k + 8 <= depth; k += 8)
      for (std::int64_t column = 0; column < panel_columns; column += 8)
        transpose_square(b.data + k + column * b.column_step, b.column_step,
                         panel + k * panel_columns + column, panel_columns);
  for (; k < depth; ++k)
    for (std::int64_t column = 0; column < panel_columns; ++column)
      panel[k * panel_columns + column] =
          column < columns ? b.data[k * b.row_step + column * b.column_step] : 0.0F;
}

/// Fetches b into the cache, for a panel that is packed later, in `parts` equal parts.
class panel_fetcher {
public:
  panel_fetcher(const matrix_view& b, std::int64_t depth, std::int64_t parts)
      : from_(b.data)
      , parts_(parts) {
    const bool along_columns = b.column_step == 1;
    runs_ = along_columns ? depth : panel_columns;
    step_ = along_columns ? b.row_step : b.column_step;
    length_ = along_columns ? panel_columns : depth;
  }

  void fetch_next() {
    const auto end = runs_ * ++part_ / parts_;
    for (; run_ < end; ++run_)
      for (std::int64_t at = 0; at < length_; at += line_floats)
        __builtin_prefetch(from_ + run_ * step_ + at);
  }

private:
  static constexpr std::int64_t line_floats = 16;
  const float* from_;
  std::int64_t parts_, runs_ = 0, step_ = 0, length_ = 0, part_ = 0, run_ = 0;
};

} // namespace

/// Rows and depth of a part of the product that is computed at once.
struct matrix_product::block {
  std::int64_t first_row, rows, first, depth;
};

/// Each tile's rows of a, element by element.
void matrix_product::pack_tiles(const block& part, const matrix_view& a) {
  each_tile(part.rows, [&](std::int64_t first, std::int64_t rows) {
    float* const tile = tiles_.data() + first * part.depth;
    for (std::int64_t k = 0; k < part.depth; ++k) {
      const float* const from = a.data + (part.first_row + first) + (part.first + k) * a.column_step;
      for (std::int64_t row = 0; row < rows; ++row) tile[k * rows + row] = from[row];
    }
  });
}

void matrix_product::multiply_panel(const block& part, const matrix_view& a, const matrix_view& next,
                                    std::int64_t columns, float* c, std::int64_t c_step) {
  const bool packed = a.column_step != 1, adds = part.first > 0;
  tile_operand operand{.length = part.depth};
  panel_fetcher fetcher(next, part.depth, (part.rows + tile_rows_max - 1) / tile_rows_max);
  for (std::size_t row = 0; row < operand.rows.size(); ++row)
    operand.rows[row] = static_cast<std::int64_t>(row) * (packed ? 1 : a.row_step);
  each_tile(part.rows, [&](std::int64_t first, std::int64_t rows) {
    fetcher.fetch_next();
    operand.step = packed ? rows : 1;
    operand.data = packed ? tiles_.data() + first * part.depth
                          : a.data + (part.first_row + first) * a.row_step + part.first;
    float* const to = c + (part.first_row + first) * c_step;
    if (columns == panel_columns)
      return multiply_rows<vector>(rows, operand, panel_.data(), to, c_step, adds);
    std::array<float, tile_rows_max * panel_columns> edge{};
    const auto copy = [&](const float* from, std::int64_t from_step, float* into, std::int64_t into_step) {
      for (std::int64_t row = 0; row < rows; ++row)
        std::copy_n(from + row * from_step, columns, into + row * into_step);
    };
    if (adds) copy(to, c_step, edge.data(), panel_columns);
    multiply_rows<vector>(rows, operand, panel_.data(), edge.data(), panel_columns, adds);
    copy(edge.data(), panel_columns, to, c_step);
  });
}

void matrix_product::operator()(std::int64_t rows, std::int64_t columns, std::int64_t depth,
                                const matrix_view& a, const matrix_view& b, float* c) {
  DLRUN_CHECK(rows > 0 && columns > 0 && depth > 0, "a product of {} x {} and {} x {}", rows, depth, depth,
              columns);
  DLRUN_CHECK((a.row_step == 1 || a.column_step == 1) && (b.row_step == 1 || b.column_step == 1),
              "a matrix without a step of 1");
  const auto block_rows = even_part(rows, rows_max);
  const auto block_depth = (even_part(depth, depth_max) + 7) / 8 * 8; // for transpose_square()
  panel_.resize(block_depth * panel_columns);
  if (a.column_step != 1) tiles_.resize(block_rows * block_depth);
  for (std::int64_t row = 0; row < rows; row += block_rows)
    for (std::int64_t first = 0; first < depth; first += block_depth) {
      const block part{row, std::min(block_rows, rows - row), first, std::min(block_depth, depth - first)};
      if (a.column_step != 1) pack_tiles(part, a);
      for (std::int64_t column = 0; column < columns; column += panel_columns) {
        const auto width = std::min(panel_columns, columns - column);
        const auto from = [&](std::int64_t at) {
          return matrix_view{b.data + first * b.row_step + at * b.column_step, b.row_step, b.column_step};
        };
        pack_panel(from(column), part.depth, width, panel_.data());
        const bool last = column + panel_columns >= columns; // of this block: what comes next is not here
        multiply_panel(part, a, from(last ? column : column + panel_columns), width, c + column, columns);
      }
    }
}

} // namespace dlrun::kernels::cpu
