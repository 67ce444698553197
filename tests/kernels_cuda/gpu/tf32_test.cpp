// Products and convolutions of a device that was opened for TF32.
#include "kernels/cuda/cuda_module.hpp"
#include "tests/kernels_cuda/gpu/close_sums.hpp"
#include "tests/kernels_cuda/on_device.hpp"

#include <optional>

namespace dlrun::kernels::cuda {
namespace {

/// Both factors of a product are off by at most 2^-11 of themselves where they are rounded, and
/// 2^-10 where they are cut.
constexpr double error_max = 2.1 / 1024;

class gpu_tf32 : public testing::Test {
protected:
  void SetUp() override {
    auto opened = module_.open(0, precision::tf32);
    ASSERT_TRUE(opened) << opened.error().message;
    there_.emplace(std::move(*opened));
  }

  /// c (m, n) of a (m, k) and b (k, n), and how far it is from the sums in double, as a part of the
  /// largest sum of sizes.
  std::vector<float> product_of(std::int64_t m, std::int64_t n, std::int64_t k, double& error) {
    const auto a = some_floats(m * k, 1, true), b = some_floats(k * n, 2, true);
    float* const c = there_->room<float>(m * n);
    there_->run(product{m, n, k, false, false, there_->put(a), there_->put(b), nullptr, c});
    auto got = there_->get(c, m * n);
    double size = 0;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        plain_sum sum;
        for (std::int64_t l = 0; l < k; ++l)
          sum.add(a[static_cast<std::size_t>(i * k + l)], b[static_cast<std::size_t>(l * n + j)]);
        error = std::max(error, std::abs(got[static_cast<std::size_t>(i * n + j)] - sum.value));
        size = std::max(size, sum.size);
      }
    error /= size;
    return got;
  }

  cuda_module module_;
  std::optional<on_device> there_;
};

TEST_F(gpu_tf32, rounds_the_factors_of_large_products_and_not_by_more) {
  double error = 0;
  const auto first = product_of(256, 256, 64, error);
  EXPECT_LE(error, error_max);
  EXPECT_GE(error, 4e-6) << "that is single precision";
  double again = 0;
  expect_same_bits(product_of(256, 256, 64, again), first);
}

TEST_F(gpu_tf32, rounds_the_factors_of_convolutions_and_not_by_more) {
  const cpu::convolution_geometry g{64, 14, 14, 64, 14, 14, 1, 1, 0}; // a product for each pixel
  const std::int64_t rows = 8 * 14 * 14;
  const auto x = some_floats(rows * 64, 1, true), w = some_floats(64 * 64, 2, true);
  float* const y = there_->room<float>(rows * 64);
  const convolution one{convolution::pass::forward, g, 8, there_->put(x), there_->put(w), y};
  there_->run(one);
  const auto got = there_->get(y, rows * 64);
  double size = 0, error = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i)
    for (std::size_t out = 0; out < 64; ++out) {
      plain_sum sum;
      for (std::size_t in = 0; in < 64; ++in) sum.add(x[i * 64 + in], w[out * 64 + in]);
      error = std::max(error, std::abs(got[i * 64 + out] - sum.value));
      size = std::max(size, sum.size);
    }
  EXPECT_LE(error, error_max * size);
  EXPECT_GE(error, 4e-6 * size) << "that is single precision";
  there_->run(one);
  expect_same_bits(there_->get(y, rows * 64), got);
}

} // namespace
} // namespace dlrun::kernels::cuda
