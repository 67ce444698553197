#include "kernels/cpu/weights_gradient.hpp"

#include "tests/kernels_cpu/drawn.hpp"

#include <cmath>
#include <gtest/gtest.h>

namespace dlrun::kernels::cpu {
namespace {

struct gradient_case {
  convolution_geometry g;
  std::int64_t batch;
  std::vector<float> x, dy;

  gradient_case(std::int64_t n, std::int64_t in, std::int64_t height, std::int64_t width, std::int64_t out,
                std::int64_t kernel, std::int64_t stride, std::int64_t padding, bool flat = false)
      : g{in, height, width, out, 0, 0, kernel, stride, padding, true, flat}
      , batch(n) {
    g.out_height = (height + 2 * g.padding_height() - g.kernel_height()) / g.stride_height() + 1;
    g.out_width = (width + 2 * padding - kernel) / stride + 1;
    x = drawn(n * height * width * in, 1);
    dy = drawn(n * g.out_height * g.out_width * out, 2);
  }

  float x_at(std::int64_t n, std::int64_t row, std::int64_t column, std::int64_t channel) const {
    if (row < 0 || row >= g.height || column < 0 || column >= g.width) return 0;
    return x[static_cast<std::size_t>(((n * g.height + row) * g.width + column) * g.in_channels + channel)];
  }
  float dy_at(std::int64_t n, std::int64_t row, std::int64_t column, std::int64_t channel) const {
    return dy[static_cast<std::size_t>(((n * g.out_height + row) * g.out_width + column) * g.out_channels +
                                       channel)];
  }

  /// Calls visit(n, row, column) for each pixel of dy, in the order of the sums.
  template <class Visit>
  void each_pixel(Visit&& visit) const {
    for (std::int64_t n = 0; n < batch; ++n)
      for (std::int64_t row = 0; row < g.out_height; ++row)
        for (std::int64_t column = 0; column < g.out_width; ++column) visit(n, row, column);
  }

  /// dy with `block` channels together.
  std::vector<float> blocked(std::int64_t block) const {
    std::vector<float> out;
    for (std::int64_t n = 0; n < batch; ++n)
      for (std::int64_t first = 0; first < g.out_channels; first += block)
        for (std::int64_t row = 0; row < g.out_height; ++row)
          for (std::int64_t column = 0; column < g.out_width; ++column)
            for (std::int64_t c = first; c < first + block; ++c) out.push_back(dy_at(n, row, column, c));
    return out;
  }
};

struct gradients {
  std::vector<float> dw, db;

  explicit gradients(const gradient_case& c)
      : dw(static_cast<std::size_t>(c.g.out_channels * c.g.in_channels * c.g.kernel_height() * c.g.kernel),
           NAN)
      , db(static_cast<std::size_t>(c.g.out_channels), NAN) {}
};

gradients computed(const gradient_case& c) {
  gradients found(c);
  weights_gradient kernel(c.g);
  kernel(c.batch, c.x.data(), c.dy.data(), c.g.out_channels, found.dw.data(), found.db.data());
  return found;
}

/// The same bits as the chains of fused multiply-adds that are promised, and near the sums in
/// double.
void expect_chains(const gradient_case& c) {
  const auto found = computed(c);
  std::size_t at = 0;
  for (std::int64_t o = 0; o < c.g.out_channels; ++o) {
    for (std::int64_t i = 0; i < c.g.in_channels; ++i)
      for (std::int64_t p = 0; p < c.g.kernel_height(); ++p)
        for (std::int64_t q = 0; q < c.g.kernel; ++q, ++at) {
          float chain = 0;
          double sum = 0;
          c.each_pixel([&](std::int64_t n, std::int64_t row, std::int64_t column) {
            const float x = c.x_at(n, row * c.g.stride_height() + p - c.g.padding_height(),
                                   column * c.g.stride + q - c.g.padding, i);
            chain = std::fma(x, c.dy_at(n, row, column, o), chain);
            sum += static_cast<double>(x) * c.dy_at(n, row, column, o);
          });
          ASSERT_EQ(found.dw[at], chain) << "dw[" << at << "]";
          ASSERT_NEAR(found.dw[at], sum, 1e-4 * std::max(1.0, std::abs(sum)));
        }
    double sum = 0;
    c.each_pixel(
        [&](std::int64_t n, std::int64_t row, std::int64_t column) { sum += c.dy_at(n, row, column, o); });
    ASSERT_NEAR(found.db[static_cast<std::size_t>(o)], sum, 1e-4 * std::max(1.0, std::abs(sum)));
  }
}

TEST(weights_gradient, adds_in_the_order_of_records_and_pixels_for_any_number_of_channels) {
  for (const std::int64_t in : {1, 3, 16, 20, 32})
    for (const std::int64_t out : {1, 8, 16, 21}) expect_chains({3, in, 6, 5, out, 3, 1, 1});
}

TEST(weights_gradient, adds_in_that_order_for_strides_paddings_and_kernels) {
  expect_chains({2, 5, 9, 8, 7, 3, 2, 1});
  expect_chains({2, 3, 8, 8, 9, 2, 3, 0});
  expect_chains({4, 6, 5, 5, 3, 1, 1, 0});
  expect_chains({2, 17, 7, 8, 5, 1, 3, 0});
  expect_chains({4, 2, 5, 5, 10, 5, 1, 0});
  expect_chains({2, 2, 3, 3, 4, 2, 1, 3});
  expect_chains({3, 4, 1, 20, 6, 5, 2, 2, true});
}

TEST(weights_gradient, adds_in_that_order_for_images_of_several_chunks) {
  expect_chains({2, 2, 40, 29, 5, 3, 1, 1});
  expect_chains({1, 1, 3, 300, 16, 3, 1, 1});
}

TEST(weights_gradient, takes_blocks_of_channels_for_the_same_bits) {
  const gradient_case c(2, 5, 7, 6, 32, 3, 1, 1);
  const auto expected = computed(c);
  for (const std::int64_t block : {8, 16}) {
    gradients found(c);
    weights_gradient kernel(c.g);
    kernel(c.batch, c.x.data(), c.blocked(block).data(), block, found.dw.data(), found.db.data());
    EXPECT_EQ(found.dw, expected.dw);
    EXPECT_EQ(found.db, expected.db);
  }
}

TEST(weights_gradient, gives_the_same_bits_whatever_was_computed_before) {
  const gradient_case c(3, 5, 7, 6, 21, 3, 1, 1), other(4, 5, 7, 6, 21, 3, 1, 1);
  const auto expected = computed(c);
  weights_gradient kernel(c.g);
  gradients found(c);
  kernel(other.batch, other.x.data(), other.dy.data(), 21, found.dw.data(), found.db.data());
  kernel(c.batch, c.x.data(), c.dy.data(), 21, found.dw.data(), found.db.data());
  EXPECT_EQ(found.dw, expected.dw);
  EXPECT_EQ(found.db, expected.db);
}

TEST(weights_gradient, leaves_the_gradient_of_a_bias_alone_that_is_not_there) {
  gradient_case c(2, 3, 5, 5, 4, 3, 1, 1);
  c.g.bias = false;
  for (const float value : computed(c).db) EXPECT_TRUE(std::isnan(value));
}

TEST(weights_gradient_death, blocks_that_do_not_divide_the_channels_are_a_broken_caller) {
  const gradient_case c(1, 1, 4, 4, 20, 3, 1, 1);
  gradients found(c);
  weights_gradient kernel(c.g);
  EXPECT_DEATH(kernel(1, c.x.data(), c.dy.data(), 16, found.dw.data(), found.db.data()),
               "blocks of 16 of 20 channels");
}

} // namespace
} // namespace dlrun::kernels::cpu
