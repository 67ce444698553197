#include "tests/kernels_cuda/gpu/close_sums.hpp"
#include "tests/kernels_cuda/on_device.hpp"

#include <algorithm>
#include <cmath>

namespace dlrun::kernels::cuda {
namespace {

struct sizes {
  std::int64_t m, n, k;
};

/// Single rows, columns and products; odd; about tiles; sums long enough to be split.
const std::vector<sizes>& awkward_products() {
  static const std::vector<sizes> all{{1, 1, 1},       {1, 10, 784},   {64, 1, 33},   {3, 5, 7},
                                      {64, 10, 128},   {65, 33, 17},   {7, 512, 9},   {10, 784, 64},
                                      {128, 128, 128}, {33, 70, 4097}, {2, 2, 50000}, {257, 129, 63}};
  return all;
}

struct factors {
  std::vector<float> a, b, row;
};

factors factors_of(const sizes& s) {
  return {some_floats(s.m * s.k, 1, true), some_floats(s.k * s.n, 2, true), some_floats(s.n, 3, true)};
}

std::vector<plain_sum> wanted_product(const sizes& s, bool turn_a, bool turn_b, bool with_row,
                                      const factors& f) {
  std::vector<plain_sum> c(static_cast<std::size_t>(s.m * s.n));
  for (std::int64_t i = 0; i < s.m; ++i)
    for (std::int64_t j = 0; j < s.n; ++j) {
      auto& sum = c[static_cast<std::size_t>(i * s.n + j)];
      for (std::int64_t l = 0; l < s.k; ++l)
        sum.add(f.a[static_cast<std::size_t>(turn_a ? l * s.m + i : i * s.k + l)],
                f.b[static_cast<std::size_t>(turn_b ? j * s.k + l : l * s.n + j)]);
      if (with_row) sum.add(f.row[static_cast<std::size_t>(j)], 1.0F);
    }
  return c;
}

/// `shift` floats behind where memory is aligned.
std::vector<float> product_there(on_device& there, const sizes& s, bool turn_a, bool turn_b, bool with_row,
                                 const factors& f, std::size_t shift = 0, bool relu = false) {
  const auto put = [&](std::vector<float> values) {
    values.insert(values.begin(), shift, NAN);
    return there.put(values) + shift;
  };
  const std::int64_t count = s.m * s.n;
  float* const c = there.room<float>(count + static_cast<std::int64_t>(shift)) + shift;
  there.run(product{s.m, s.n, s.k, turn_a, turn_b, put(f.a), put(f.b), with_row ? put(f.row) : nullptr, c,
                    false, relu});
  return there.get(c, count);
}

TEST(gpu_product, is_in_single_precision_for_all_sizes_and_orders_of_factors) {
  for (const auto& s : awkward_products())
    for (const bool turn_a : {false, true})
      for (const bool turn_b : {false, true})
        for (const bool with_row : {false, true}) {
          SCOPED_TRACE(testing::Message() << s.m << ", " << s.n << ", " << s.k << " turned " << turn_a
                                          << turn_b << " row " << with_row);
          on_device there(0);
          const auto f = factors_of(s);
          expect_single_precision(product_there(there, s, turn_a, turn_b, with_row, f),
                                  wanted_product(s, turn_a, turn_b, with_row, f));
        }
}

/// The row is such that about half of the sums are below 0. Where cuBLASLt takes relu, it may
/// compute the product in another way than without it.
TEST(gpu_product, takes_relu_of_what_it_writes_and_leaves_nan) {
  for (const auto& s : awkward_products())
    for (const std::size_t shift : {0U, 3U})
      for (const bool with_row : {false, true}) {
        SCOPED_TRACE(testing::Message() << s.m << ", " << s.n << ", " << s.k << " row " << with_row);
        on_device there(0);
        auto f = factors_of(s);
        auto wanted = wanted_product(s, false, true, with_row, f);
        for (auto& sum : wanted) sum.value = std::max(sum.value, 0.0);
        expect_single_precision(product_there(there, s, false, true, with_row, f, shift, true), wanted);
        f.a[0] = NAN;
        const auto got = product_there(there, s, false, true, with_row, f, shift, true);
        for (std::int64_t j = 0; j < s.n; ++j) ASSERT_TRUE(std::isnan(got[static_cast<std::size_t>(j)])) << j;
        if (!with_row) continue;
        f.a[0] = 1;
        f.row.back() = NAN;
        ASSERT_TRUE(std::isnan(product_there(there, s, false, true, true, f, shift, true).back()));
      }
}

TEST(gpu_product, takes_matrices_that_are_aligned_to_floats_alone) {
  for (const auto& s : awkward_products()) {
    SCOPED_TRACE(testing::Message() << s.m << ", " << s.n << ", " << s.k);
    on_device there(0);
    const auto f = factors_of(s);
    expect_single_precision(product_there(there, s, false, true, true, f, 3),
                            wanted_product(s, false, true, true, f));
  }
}

TEST(gpu_product, has_the_same_bits_wherever_and_whenever_it_is_computed) {
  for (const auto& s : awkward_products()) {
    on_device there(0);
    const auto f = factors_of(s);
    const auto first = product_there(there, s, true, false, true, f);
    expect_same_bits(product_there(there, s, true, false, true, f), first);
    expect_same_bits(product_there(there, s, true, false, true, f, 4), first); // other addresses
  }
}

TEST(gpu_product, of_nothing_is_the_row_or_zero) {
  on_device there(0);
  const std::vector<float> row{1, 2, 3};
  float* const c = there.put(std::vector<float>(6, NAN));
  there.run(product{2, 3, 0, false, false, nullptr, nullptr, there.put(row), c});
  expect_same_bits(there.get(c, 6), {1, 2, 3, 1, 2, 3});
  there.run(product{2, 3, 0, false, false, nullptr, nullptr, nullptr, c});
  expect_same_bits(there.get(c, 6), std::vector<float>(6, 0.0F));
  there.run(product{0, 3, 5, false, false, nullptr, nullptr, nullptr, nullptr});
}

TEST(gpu_product, runs_in_both_lanes_at_once) {
  on_device there(0);
  const sizes s{33, 70, 4097};
  const auto f = factors_of(s);
  const auto wanted = product_there(there, s, false, false, true, f);
  const float *const a = there.put(f.a), *const b = there.put(f.b), *const row = there.put(f.row);
  std::vector<float*> to;
  for (int i = 0; i < 20; ++i) {
    to.push_back(there.room<float>(s.m * s.n));
    there.get().run(i % 2 == 0 ? lane::compute : lane::side,
                    product{s.m, s.n, s.k, false, false, a, b, row, to.back()});
  }
  ASSERT_TRUE(there.get().finish(lane::side));
  ASSERT_TRUE(there.get().finish(lane::compute));
  for (const float* const one : to) expect_same_bits(there.get(one, s.m * s.n), wanted);
}

TEST(gpu_product, hands_on_what_is_not_a_number) {
  on_device there(0);
  const sizes s{40, 40, 40};
  auto f = factors_of(s);
  f.a[5 * 40 + 7] = NAN;
  const auto got = product_there(there, s, false, false, false, f);
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(std::isnan(got[i]), i / 40 == 5) << i;
}

} // namespace
} // namespace dlrun::kernels::cuda
