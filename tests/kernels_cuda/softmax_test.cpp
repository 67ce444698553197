#include "kernels/cpu/softmax.hpp"
#include "tests/kernels_cuda/same_on_all.hpp"

namespace dlrun::kernels::cuda {
namespace {

/// None, one, rows of a thread, of some and of a whole block.
const std::vector<matrix>& awkward_rows() {
  static const std::vector<matrix> all{{0, 5},   {1, 1},   {300, 1}, {257, 2},  {3, 3},    {100, 5},
                                       {33, 17}, {5, 255}, {2, 257}, {3, 1000}, {1, 4097}, {2, 9000}};
  return all;
}

floats softmax_of(const matrix& m, const floats& x) {
  return same_on_all([&](on_device& there) {
    float* const y = there.room<float>(m.rows * m.columns);
    there.run(softmax_forward{m.rows, m.columns, there.put(x), y});
    return there.get(y, m.rows * m.columns);
  });
}

floats wanted_softmax(const matrix& m, const floats& x) {
  floats y(x.size());
  cpu::softmax(m.columns, x, y);
  return y;
}

TEST(softmax_forward, is_what_its_twin_computes) {
  for (const auto& m : awkward_rows()) {
    SCOPED_TRACE(testing::Message() << m.rows << " x " << m.columns);
    const auto x = ordinary_floats(m.rows * m.columns, 1);
    const auto got = softmax_of(m, x), wanted = wanted_softmax(m, x);
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 1e-6 * wanted[i]) << i;
  }
}

TEST(softmax_forward, of_great_infinite_and_missing_scores_is_as_its_twin) {
  for (const matrix m : {matrix{40, 3}, matrix{20, 40}, matrix{8, 300}}) {
    auto x = some_floats(m.rows * m.columns, 2);
    for (std::int64_t row = 0; row < m.rows; row += 2) // else there would be NaN in all long rows
      for (std::int64_t i = 0; i < m.columns; ++i) {
        float& value = x[static_cast<std::size_t>(row * m.columns + i)];
        if (std::isnan(value) || value == INFINITY) value = -INFINITY;
      }
    expect_close(softmax_of(m, x), wanted_softmax(m, x), 1e-6);
  }
}

TEST(softmax_forward, may_write_over_what_it_reads) {
  const matrix m{9, 70};
  const auto x = ordinary_floats(m.rows * m.columns, 3);
  const auto in_place = same_on_all([&](on_device& there) {
    float* const at = there.put(x);
    there.run(softmax_forward{m.rows, m.columns, at, at});
    return there.get(at, m.rows * m.columns);
  });
  expect_same_bits(in_place, softmax_of(m, x));
}

TEST(softmax_forward, has_no_limit_of_rows) {
  const matrix m{541'000, 2}; // more than a grid has threads
  const auto x = ordinary_floats(m.rows * m.columns, 4);
  on_device there(0);
  float* const y = there.room<float>(m.rows * m.columns);
  there.run(softmax_forward{m.rows, m.columns, there.put(x), y});
  expect_close(there.get(y, m.rows * m.columns), wanted_softmax(m, x), 1e-6);
}

TEST(softmax_backward, is_what_its_twin_computes_also_over_the_gradient) {
  for (const auto& m : awkward_rows()) {
    SCOPED_TRACE(testing::Message() << m.rows << " x " << m.columns);
    const auto y = wanted_softmax(m, ordinary_floats(m.rows * m.columns, 1));
    const auto dy = ordinary_floats(m.rows * m.columns, 2);
    floats wanted(y.size());
    cpu::softmax_backward(m.columns, y, dy, wanted);
    const auto compute = [&](bool in_place) {
      return same_on_all([&](on_device& there) {
        float* const gradient = there.put(dy);
        float* const dx = in_place ? gradient : there.room<float>(m.rows * m.columns);
        there.run(softmax_backward{m.rows, m.columns, there.put(y), gradient, dx});
        return there.get(dx, m.rows * m.columns);
      });
    };
    const auto got = compute(false);
    expect_close(got, wanted, 1e-6);
    expect_same_bits(compute(true), got);
  }
}

} // namespace
} // namespace dlrun::kernels::cuda
