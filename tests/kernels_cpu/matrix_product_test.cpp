#include "kernels/cpu/matrix_product.hpp"

#include "tests/kernels_cpu/drawn.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

namespace dlrun::kernels::cpu {
namespace {

struct product_case {
  std::int64_t rows, columns, depth;
  bool a_transposed, b_transposed;
  std::vector<float> a = drawn(rows * depth, 1), b = drawn(depth * columns, 2);

  matrix_view left() const {
    return a_transposed ? matrix_view{a.data(), 1, rows} : matrix_view{a.data(), depth, 1};
  }
  matrix_view right() const {
    return b_transposed ? matrix_view{b.data(), 1, depth} : matrix_view{b.data(), columns, 1};
  }
  std::vector<float> product(matrix_product& multiply) const {
    std::vector<float> c(static_cast<std::size_t>(rows * columns), NAN);
    multiply(rows, columns, depth, left(), right(), c.data());
    return c;
  }
};

float at(const matrix_view& m, std::int64_t row, std::int64_t column) {
  return m.data[row * m.row_step + column * m.column_step];
}

/// The same bits as the chains of fused multiply-adds that are promised, and near the sums in
/// double.
void expect_chains(const product_case& c) {
  matrix_product multiply;
  const auto found = c.product(multiply);
  for (std::int64_t i = 0; i < c.rows; ++i)
    for (std::int64_t j = 0; j < c.columns; ++j) {
      float chain = 0;
      double sum = 0;
      for (std::int64_t k = 0; k < c.depth; ++k) {
        const float x = at(c.left(), i, k), y = at(c.right(), k, j);
        chain = std::fma(x, y, chain);
        sum += static_cast<double>(x) * y;
      }
      const float value = found[static_cast<std::size_t>(i * c.columns + j)];
      ASSERT_EQ(value, chain) << i << ", " << j << " of " << c.rows << " x " << c.depth << " x " << c.columns;
      ASSERT_NEAR(value, sum, 1e-5 * static_cast<double>(c.depth));
    }
}

TEST(matrix_product, adds_in_the_order_of_depth_whatever_the_layouts) {
  for (const bool a_transposed : {false, true})
    for (const bool b_transposed : {false, true}) {
      expect_chains({128, 48, 70, a_transposed, b_transposed});
      expect_chains({10, 37, 128, a_transposed, b_transposed});
      expect_chains({1, 1, 1, a_transposed, b_transposed});
    }
}

TEST(matrix_product, adds_in_that_order_for_any_number_of_rows_and_columns) {
  for (std::int64_t rows = 1; rows <= 14; ++rows) expect_chains({rows, 16, 9, false, true});
  for (std::int64_t columns = 1; columns <= 33; ++columns) expect_chains({7, columns, 9, true, false});
}

TEST(matrix_product, adds_in_that_order_across_blocks_of_rows_and_of_depth) {
  for (const bool transposed : {false, true}) {
    expect_chains({257, 20, 513, transposed, !transposed});
    expect_chains({13, 17, 1031, transposed, transposed});
  }
}

TEST(matrix_product, gives_the_same_bits_whatever_was_multiplied_before) {
  const product_case small{5, 7, 11, true, true}, large{300, 40, 300, true, true};
  matrix_product multiply;
  const auto expected = small.product(multiply);
  (void)large.product(multiply);
  EXPECT_EQ(small.product(multiply), expected);
}

TEST(matrix_product, keeps_nan_and_infinity_to_their_row) {
  product_case c{9, 18, 40, false, false};
  c.a[3 * 40 + 7] = std::numeric_limits<float>::quiet_NaN();
  c.a[5 * 40 + 7] = std::numeric_limits<float>::infinity();
  matrix_product multiply;
  const auto found = c.product(multiply);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto row = i / 18;
    EXPECT_EQ(std::isnan(found[i]), row == 3) << i;
    EXPECT_EQ(std::isinf(found[i]), row == 5) << i;
  }
}

TEST(matrix_product_death, what_is_empty_or_has_no_step_of_one_is_a_broken_caller) {
  matrix_product multiply;
  float number = 1;
  EXPECT_DEATH(multiply(1, 0, 1, {&number, 1, 1}, {&number, 1, 1}, &number), "a product of 1 x 1 and 1 x 0");
  EXPECT_DEATH(multiply(1, 1, 1, {&number, 2, 2}, {&number, 1, 1}, &number), "without a step of 1");
}

} // namespace
} // namespace dlrun::kernels::cpu
