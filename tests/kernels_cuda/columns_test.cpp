#include "kernels/cpu/elementwise.hpp"
#include "kernels/cpu/strided.hpp"
#include "tests/kernels_cuda/same_on_all.hpp"

namespace dlrun::kernels::cuda {
namespace {

/// None, one, about a tile and a block, many of one and few of the other.
const std::vector<matrix>& awkward_matrices() {
  static const std::vector<matrix> all{{0, 3},  {1, 1},   {1, 9},    {2, 8},   {7, 2},     {9, 7},   {33, 33},
                                       {5, 64}, {129, 8}, {1000, 1}, {513, 3}, {5000, 17}, {3, 3000}};
  return all;
}

floats sums_of(const matrix& m, const floats& from) {
  return same_on_all([&](on_device& there) {
    float* const sums = there.room<float>(m.columns);
    there.run(sum_columns{m.rows, m.columns, there.put(from), sums});
    return there.get(sums, m.columns);
  });
}

floats wanted_sums(const matrix& m, const floats& from) {
  floats sums(static_cast<std::size_t>(m.columns));
  cpu::sum_columns(from, sums);
  return sums;
}

TEST(sum_columns, adds_every_row_once) {
  for (const auto& m : awkward_matrices()) {
    SCOPED_TRACE(testing::Message() << m.rows << " x " << m.columns);
    floats whole = ordinary_floats(m.rows * m.columns, 1); // whole numbers: no order changes their sum
    for (float& value : whole) value = std::round(1000 * value);
    expect_same_bits(sums_of(m, whole), wanted_sums(m, whole));
  }
}

TEST(sum_columns, is_what_its_twin_sums_up_to_the_order) {
  for (const auto& m : awkward_matrices()) {
    SCOPED_TRACE(testing::Message() << m.rows << " x " << m.columns);
    const auto from = ordinary_floats(m.rows * m.columns, 2);
    expect_close(sums_of(m, from), wanted_sums(m, from), 1e-6);
  }
}

TEST(sum_columns, adds_in_double) { EXPECT_EQ(sums_of({3, 1}, {1e9F, 1, -1e9F}), floats{1}); }

TEST(sum_columns, leaves_what_is_not_finite_in_its_column) {
  const matrix m{40, 11};
  const auto from = some_floats(m.rows * m.columns, 3);
  const auto got = sums_of(m, from), wanted = wanted_sums(m, from);
  for (std::size_t c = 0; c < got.size(); ++c) EXPECT_EQ(std::isnan(got[c]), std::isnan(wanted[c]));
  floats one(440, 1);
  one[7 * 11 + 5] = NAN;
  const auto sums = sums_of(m, one);
  for (std::size_t c = 0; c < sums.size(); ++c) EXPECT_EQ(std::isnan(sums[c]), c == 5);
}

TEST(add_row, has_the_bits_of_its_twin) {
  auto matrices = awkward_matrices();
  matrices.push_back({300, 2001}); // more elements than a grid has threads
  for (const auto& m : matrices) {
    SCOPED_TRACE(testing::Message() << m.rows << " x " << m.columns);
    const auto row = some_floats(m.columns, 1);
    const auto wanted = some_floats(m.rows * m.columns, 2);
    for (const bool relu : {false, true}) {
      const auto got = same_on_all([&](on_device& there) {
        float* const to = there.put(wanted);
        there.run(add_row{m.rows, m.columns, there.put(row), to, relu});
        return there.get(to, m.rows * m.columns);
      });
      auto twin = wanted;
      cpu::add_row(row, twin);
      if (relu) cpu::relu(twin, twin);
      expect_same_bits(got, twin);
    }
  }
}

} // namespace
} // namespace dlrun::kernels::cuda
