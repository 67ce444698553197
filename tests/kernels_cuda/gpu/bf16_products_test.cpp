// Products and convolutions of a device that was opened for bf16.
#include "kernels/cuda/bf16.hpp"
#include "tests/kernels_cuda/gpu/close_sums.hpp"
#include "tests/kernels_cuda/on_device.hpp"

#include <cmath>

namespace dlrun::kernels::cuda {
namespace {

/// Of what is written, half a unit of its 8th bit, and a little for sums in single precision.
constexpr double error_of_bf16 = 1.01 / 512, error_of_sums = 4e-6;

std::vector<bf16> numbers_of(std::int64_t count, unsigned seed) {
  std::vector<bf16> numbers;
  for (const float value : some_floats(count, seed, true)) numbers.push_back(rounded_to_bf16(value));
  return numbers;
}

float value_of(float value) { return value; }
float value_of(bf16 value) { return widened(value); }

/// Fails unless c (m, n) is a (m, k) b (k, n), where b lies transposed.
template <class Result>
void expect_products(const std::vector<Result>& c, const std::vector<bf16>& a, const std::vector<bf16>& b,
                     std::size_t n, std::size_t k, double error_max) {
  for (std::size_t i = 0; i < c.size(); ++i) {
    plain_sum sum;
    for (std::size_t l = 0; l < k; ++l) sum.add(widened(a[i / n * k + l]), widened(b[i % n * k + l]));
    ASSERT_LE(std::abs(static_cast<double>(value_of(c[i])) - sum.value),
              error_max * std::abs(sum.value) + error_of_sums * sum.size)
        << i;
  }
}

class gpu_bf16 : public testing::Test {
protected:
  static constexpr std::int64_t m = 256, n = 64, k = 96;
  on_device there{test_device(0, precision::bf16)};
  const std::vector<bf16> a = numbers_of(m * k, 1), b = numbers_of(n * k, 2);
};

TEST_F(gpu_bf16, writes_products_of_bf16_as_bf16_or_as_floats) {
  auto* const c = there.room<bf16>(m * n);
  auto* const floats = there.room<float>(m * n);
  const product rounded{m, n, k, false, true, there.put(a), there.put(b), nullptr, c};
  there.run(rounded);
  const auto got = there.get(c, m * n);
  expect_products(got, a, b, n, k, error_of_bf16);
  product whole = rounded;
  whole.c = floats;
  whole.c_is_floats = true;
  there.run(whole);
  expect_products(there.get(floats, m * n), a, b, n, k, 0);
}

TEST_F(gpu_bf16, convolutions_write_bf16) {
  const cpu::convolution_geometry g{k, 4, 8, n, 4, 8, 1, 1, 0}; // a product for each of 8 * 32 pixels
  auto* const y = there.room<bf16>(m * n);
  const convolution one{convolution::pass::forward, g, 8, there.put(a), there.put(b), y};
  there.run(one);
  const auto got = there.get(y, m * n);
  expect_products(got, a, b, n, k, error_of_bf16);
  there.run(one);
  const auto again = there.get(y, m * n);
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(again[i].bits, got[i].bits);
}

} // namespace
} // namespace dlrun::kernels::cuda
