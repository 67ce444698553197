/// What tests of kernels that sum share: results that no order of threads changes, and numbers that
/// are the same up to the order of a sum.
#pragma once

#include "tests/kernels_cuda/on_device.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <initializer_list>
#include <span>
#include <vector>

namespace dlrun::kernels::cuda {

using floats = std::vector<float>;
using doubles = std::vector<double>;

struct matrix {
  std::int64_t rows, columns;
};

/// What compute(there) gives on each variant of the device, and on the first of them twice: fails
/// unless the bits are the same.
template <class Compute>
auto same_on_all(Compute compute) {
  const auto compute_on = [&](int variant) {
    on_device there(variant);
    return compute(there);
  };
  const auto first = compute_on(0);
  for (int variant = 0; variant < device_variants(); ++variant) {
    SCOPED_TRACE(variant);
    expect_same_bits(compute_on(variant), first);
  }
  return first;
}

/// Fails with the first element that is further from `wanted` than `tolerance`, of what is wanted
/// where that is above 1. What is not finite is to be the same.
template <class Value>
void expect_close(const std::vector<Value>& got, const std::vector<Value>& wanted, double tolerance) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto a = static_cast<double>(got[i]), b = static_cast<double>(wanted[i]);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b) continue;
    ASSERT_LE(std::abs(a - b), tolerance * std::max(1.0, std::abs(b)))
        << "element " << i << " of " << got.size() << " is " << got[i] << ", not " << wanted[i];
  }
}

/// One after another.
template <class Value>
std::vector<Value> joined(std::initializer_list<std::vector<Value>> parts) {
  std::vector<Value> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// A copy of `values` there, or null where there are none.
template <class Value>
Value* put_or_null(on_device& there, const std::vector<Value>& values) {
  return values.empty() ? nullptr : there.put(values);
}

/// Room for `count` floats there, or null where there are none.
inline float* room_or_null(on_device& there, std::int64_t count) {
  return count == 0 ? nullptr : there.room<float>(count);
}

/// The `count` values there, or none.
template <class Value>
std::vector<Value> get_or_none(on_device& there, const Value* from, std::int64_t count) {
  return from == nullptr ? std::vector<Value>{} : there.get(from, count);
}

inline floats ordinary_floats(std::int64_t count, unsigned seed) { return some_floats(count, seed, true); }

} // namespace dlrun::kernels::cuda
