/// Sums of products of floats against the same in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

namespace dlrun::kernels::cuda {

/// A sum in double, and that of the sizes of what was added.
struct plain_sum {
  double value = 0, size = 0;
  void add(float a, float b) {
    const double one = static_cast<double>(a) * static_cast<double>(b);
    value += one;
    size += std::abs(one);
  }
};

/// Fails with the first element whose error is above 4e-6 of the size of the largest sum. In single
/// precision it is below 1e-6; with factors rounded to TF32 some are about 5e-4 divided by the root
/// of the number of products, which is above for sums of up to thousands.
inline void expect_single_precision(const std::vector<float>& got, const std::vector<plain_sum>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  double size = 0;
  for (const auto& one : wanted) size = std::max(size, one.size);
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], wanted[i].value, 4e-6 * size) << "element " << i << " of " << got.size();
}

} // namespace dlrun::kernels::cuda
