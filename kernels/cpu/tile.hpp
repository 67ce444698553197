/// The innermost loop of matrix products and of gradients of convolutions: a tile of the result
/// stays in registers while all its products are added.
#pragma once

#include "kernels/cpu/vector.hpp"

#include <array>
#include <cstdint>

namespace dlrun::kernels::cpu {

/// Most rows of a tile. With two vectors a row, its sums fill twelve of AVX2's sixteen registers:
/// more than a multiply-add takes cycles, times two units.
constexpr std::int64_t tile_rows_max = 6;

/// Where the rows of a tile begin.
using tile_rows = std::array<std::int64_t, tile_rows_max>;

/// The left operand of a tile: rows anywhere in `data`, each of `segments` runs of `length`
/// elements.
struct tile_operand {
  const float* data = nullptr;
  tile_rows rows{};
  std::int64_t step = 1; ///< from an element to the next of its run
  std::int64_t length = 0;
  std::int64_t segments = 1;
  std::int64_t segment_step = 0; ///< from the beginning of a run to that of the next
};

/// c (+)= a * panel for `Rows` rows and two vectors of columns. `panel` has, for each element of a
/// row, that many floats one after another. c: rows `c_step` apart; `Adds`: c is added to, and not
/// only written. Each sum is a chain of fused multiply-adds in the order of the elements, which
/// begins at c or at 0.
template <class Vector, std::size_t Rows, bool Adds>
[[gnu::noinline]] void multiply_tile(const tile_operand& a, const float* panel, float* c,
                                     std::int64_t c_step) {
  constexpr auto lanes = Vector::lanes;
  std::array<const float*, Rows> row;
  std::array<Vector, Rows> left, right;
  unrolled<Rows>([&](auto i) {
    row[i] = a.data + a.rows[i];
    const float* const old = c + static_cast<std::int64_t>(i()) * c_step;
    left[i] = Adds ? Vector::load(old) : Vector::zero();
    right[i] = Adds ? Vector::load(old + lanes) : Vector::zero();
  });
  for (std::int64_t segment = 0; segment < a.segments; ++segment) {
    const auto begin = segment * a.segment_step, end = begin + a.length * a.step;
    for (std::int64_t at = begin; at < end; at += a.step, panel += 2 * lanes) {
      const auto panel_left = Vector::load(panel), panel_right = Vector::load(panel + lanes);
      unrolled<Rows>([&](auto i) {
        const auto factor = Vector::all(row[i][at]);
        left[i] = Vector::multiply_add(factor, panel_left, left[i]);
        right[i] = Vector::multiply_add(factor, panel_right, right[i]);
      });
    }
  }
  unrolled<Rows>([&](auto i) {
    float* const to = c + static_cast<std::int64_t>(i()) * c_step;
    left[i].store(to);
    right[i].store(to + lanes);
  });
}

/// The columns of a tile.
template <class Vector>
constexpr std::int64_t tile_columns = 2 * static_cast<std::int64_t>(Vector::lanes);

/// The code for tiles of 1, 2, ... rows.
template <class Vector, bool Adds>
constexpr std::array tile_code{multiply_tile<Vector, 1, Adds>, multiply_tile<Vector, 2, Adds>,
                               multiply_tile<Vector, 3, Adds>, multiply_tile<Vector, 4, Adds>,
                               multiply_tile<Vector, 5, Adds>, multiply_tile<Vector, 6, Adds>};

/// multiply_tile() of `rows` rows, 1 to tile_rows_max.
template <class Vector>
void multiply_rows(std::int64_t rows, const tile_operand& a, const float* panel, float* c,
                   std::int64_t c_step, bool adds) {
  static_assert(tile_code<Vector, true>.size() == tile_rows_max);
  const auto& code = adds ? tile_code<Vector, true> : tile_code<Vector, false>;
  code[static_cast<std::size_t>(rows - 1)](a, panel, c, c_step);
}

/// Calls visit(first, rows) for the fewest tiles of `rows` rows, all as large as the others or a
/// row smaller: one of few rows would leave the processor waiting for its sums.
template <class Visit>
void each_tile(std::int64_t rows, Visit&& visit) {
  const std::int64_t tiles = (rows + tile_rows_max - 1) / tile_rows_max;
  const std::int64_t small = rows / tiles, larger = rows % tiles;
  for (std::int64_t tile = 0, first = 0; tile < tiles; ++tile) {
    const auto size = tile < larger ? small + 1 : small;
    visit(first, size);
    first += size;
  }
}

/// The fewest parts of at most `largest` that make up `size`, as equal as they can be: the size of
/// all but the last.
constexpr std::int64_t even_part(std::int64_t size, std::int64_t largest) {
  const std::int64_t parts = (size + largest - 1) / largest;
  return (size + parts - 1) / parts;
}

} // namespace dlrun::kernels::cpu
