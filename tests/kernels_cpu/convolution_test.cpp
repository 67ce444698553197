#include "kernels/cpu/convolution.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

namespace dlrun::kernels::cpu {
namespace {

/// A geometry with random data, and plain loops in double to hold the kernel against.
struct convolution_case {
  convolution_geometry g;
  std::int64_t batch;
  std::vector<float> x, w, b, dy;

  convolution_case(std::int64_t n, std::int64_t in, std::int64_t height, std::int64_t width, std::int64_t out,
                   std::int64_t kernel, std::int64_t stride, std::int64_t padding, bool bias)
      : g{in,
          height,
          width,
          out,
          (height + 2 * padding - kernel) / stride + 1,
          (width + 2 * padding - kernel) / stride + 1,
          kernel,
          stride,
          padding,
          bias}
      , batch(n) {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<float>& v, std::int64_t size) {
      v.resize(static_cast<std::size_t>(size));
      for (auto& value : v) value = normal(random);
    };
    fill(x, n * height * width * in);
    fill(w, out * in * kernel * kernel);
    fill(b, out);
    fill(dy, n * g.out_height * g.out_width * out);
  }

  /// Calls visit(x index, w index, y index) for each product of the convolution, visit_bias(b
  /// index, y index) before them.
  template <class Visit, class VisitBias>
  void each_product(Visit visit, VisitBias visit_bias) const {
    std::int64_t y_index = 0;
    for (std::int64_t n = 0; n < batch; ++n)
      for (std::int64_t row = 0; row < g.out_height; ++row)
        for (std::int64_t column = 0; column < g.out_width; ++column)
          for (std::int64_t o = 0; o < g.out_channels; ++o, ++y_index) {
            if (g.bias) visit_bias(o, y_index);
            each_tap(n, row, column, o,
                     [&](std::int64_t x_at, std::int64_t w_at) { visit(x_at, w_at, y_index); });
          }
  }

  template <class Visit>
  void each_tap(std::int64_t n, std::int64_t row, std::int64_t column, std::int64_t o, Visit visit) const {
    for (std::int64_t i = 0; i < g.in_channels; ++i)
      for (std::int64_t p = 0; p < g.kernel; ++p)
        for (std::int64_t q = 0; q < g.kernel; ++q) {
          const std::int64_t at_row = row * g.stride - g.padding + p,
                             at_column = column * g.stride - g.padding + q;
          if (at_row < 0 || at_row >= g.height || at_column < 0 || at_column >= g.width) continue;
          visit(((n * g.height + at_row) * g.width + at_column) * g.in_channels + i,
                ((o * g.in_channels + i) * g.kernel + p) * g.kernel + q);
        }
  }
};

void expect_close(const std::vector<float>& actual, const std::vector<double>& expected, const char* what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], 1e-4 * std::max(1.0, std::abs(expected[i])))
        << what << "[" << i << "]";
}

void expect_equals_plain_loops(const convolution_case& c, bool own_avx2_code) {
  std::vector<double> y(c.dy.size()), dw(c.w.size()), db(c.b.size()), dx(c.x.size());
  const auto at = [](auto& v, std::int64_t i) -> auto& { return v[static_cast<std::size_t>(i)]; };
  c.each_product(
      [&](std::int64_t x_at, std::int64_t w_at, std::int64_t y_at) {
        at(y, y_at) += static_cast<double>(at(c.x, x_at)) * at(c.w, w_at);
        at(dw, w_at) += static_cast<double>(at(c.x, x_at)) * at(c.dy, y_at);
        at(dx, x_at) += static_cast<double>(at(c.w, w_at)) * at(c.dy, y_at);
      },
      [&](std::int64_t b_at, std::int64_t y_at) {
        at(y, y_at) += at(c.b, b_at);
        at(db, b_at) += at(c.dy, y_at);
      });

  onednn context;
  context.own_avx2_code = own_avx2_code;
  convolution kernel(context, c.g, true);
  const float unset = std::nanf("");
  std::vector<float> y_out(y.size(), unset), dw_out(dw.size(), unset), db_out(db.size(), unset),
      dx_out(dx.size(), unset);
  kernel.set_weights(c.w.data());
  kernel.forward(c.batch, c.x.data(), c.b.data(), y_out.data());
  kernel.backward(c.batch, c.x.data(), c.dy.data(), dw_out.data(), db_out.data(), dx_out.data());
  expect_close(y_out, y, "y");
  expect_close(dw_out, dw, "dw");
  expect_close(dx_out, dx, "dx");
  if (c.g.bias) expect_close(db_out, db, "db");
}

/// By oneDNN, and by what stands in for it on AVX2.
void expect_equals_plain_loops(const convolution_case& c) {
  for (const bool own_avx2_code : {false, true}) expect_equals_plain_loops(c, own_avx2_code);
}

TEST(convolution, equals_plain_loops_for_one_input_channel) {
  expect_equals_plain_loops({5, 1, 9, 7, 16, 3, 1, 1, true});
}

TEST(convolution, equals_plain_loops_for_whole_vectors_of_channels) {
  expect_equals_plain_loops({3, 32, 6, 6, 16, 3, 1, 1, true});
}

TEST(convolution, equals_plain_loops_for_odd_channels_and_strides) {
  expect_equals_plain_loops({2, 5, 9, 8, 7, 3, 2, 1, true});
  expect_equals_plain_loops({2, 3, 8, 8, 9, 2, 3, 0, false});
}

// oneDNN 2.6 gathers the pixels of such a convolution in whole vectors of channels, and wrote
// beyond its own memory where the channels do not fill them: valgrind saw it, and so did malloc.
TEST(convolution, equals_plain_loops_for_strided_kernels_of_one_pixel_on_few_channels) {
  for (const std::int64_t channels : {4, 5, 8, 12, 16}) {
    expect_equals_plain_loops({4, channels, 16, 16, 8, 1, 2, 0, false});
    expect_equals_plain_loops({2, channels, 6, 6, 16, 1, 2, 0, false});
    expect_equals_plain_loops({2, channels, 7, 8, 5, 1, 3, 0, true});
  }
}

TEST(convolution, equals_plain_loops_for_kernels_of_one_pixel_and_of_the_whole_image) {
  expect_equals_plain_loops({4, 6, 5, 5, 3, 1, 1, 0, true});
  expect_equals_plain_loops({4, 2, 5, 5, 10, 5, 1, 0, true});
}

TEST(convolution, equals_plain_loops_where_padding_exceeds_the_kernel) {
  expect_equals_plain_loops({2, 2, 3, 3, 4, 2, 1, 3, true});
}

TEST(convolution, the_same_bits_whatever_batch_sizes_came_between) {
  const convolution_case c(4, 3, 8, 8, 12, 3, 1, 1, true);
  onednn context;
  convolution kernel(context, c.g, true);
  kernel.set_weights(c.w.data());
  const auto run = [&](std::int64_t batch) {
    std::vector<float> y(static_cast<std::size_t>(batch) * 8 * 8 * 12);
    kernel.forward(batch, c.x.data(), c.b.data(), y.data());
    return y;
  };
  const auto expected = run(4);
  for (int round = 0; round < 4; ++round) // more sizes than the cache holds
    for (std::int64_t batch = 1; batch <= 4; ++batch) (void)run(batch);
  EXPECT_EQ(run(4), expected);
}

} // namespace
} // namespace dlrun::kernels::cpu
