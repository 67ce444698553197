#include "tests/kernels_cuda/on_device.hpp"

namespace dlrun::kernels::cuda {
namespace {

class library_steps : public on_each_device {};
DLRUN_ON_EACH_DEVICE(library_steps);

/// (rows, columns) from its transpose.
std::vector<float> turned(std::int64_t rows, std::int64_t columns, const std::vector<float>& from) {
  std::vector<float> to(from.size());
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c)
      to[static_cast<std::size_t>(r * columns + c)] = from[static_cast<std::size_t>(c * rows + r)];
  return to;
}

TEST_P(library_steps, a_product_takes_its_factors_either_way) {
  const std::vector<float> a{1, 2, 3, 4, 5, 6};                     // (2, 3)
  const std::vector<float> b{1, 0, 2, 1, 1, 1, -1, 2, 0, 3, 1, -2}; // (3, 4)
  for (const bool turn_a : {false, true})
    for (const bool turn_b : {false, true}) {
      on_device there(GetParam());
      const float* const left = there.put(turn_a ? turned(3, 2, a) : a);
      const float* const right = there.put(turn_b ? turned(4, 3, b) : b);
      float* const to = there.room<float>(8);
      there.run(product{2, 4, 3, turn_a, turn_b, left, right, nullptr, to});
      expect_same_bits(there.get(to, 8), {3, 11, 3, -1, 9, 23, 9, 2});
      there.run(product{2, 4, 3, turn_a, turn_b, left, right, there.put(std::vector<float>{1, 2, 3, 4}), to});
      expect_same_bits(there.get(to, 8), {4, 13, 6, 3, 10, 25, 12, 6});
    }
}

/// With a row and without, and of NaN.
TEST_P(library_steps, a_product_takes_relu_of_what_it_writes) {
  std::vector<float> a{1, 2, 3, 4, 5, 6};                                                // (2, 3)
  const std::vector<float> b{1, 0, 2, 1, 1, 1, -1, 2, 0, 3, 1, -2}, row{-4, -12, -4, 1}; // (3, 4)
  on_device there(GetParam());
  const float* const right = there.put(b);
  float* const to = there.room<float>(8);
  there.run(product{2, 4, 3, false, false, there.put(a), right, nullptr, to, false, true});
  expect_same_bits(there.get(to, 8), {3, 11, 3, 0, 9, 23, 9, 2});
  const float* const added = there.put(row);
  there.run(product{2, 4, 3, false, false, there.put(a), right, added, to, false, true});
  expect_same_bits(there.get(to, 8), {0, 0, 0, 0, 5, 11, 5, 3});
  a[4] = NAN;
  there.run(product{2, 4, 3, false, false, there.put(a), right, added, to, false, true});
  expect_same_bits(there.get(to, 8), {0, 0, 0, 0, NAN, NAN, NAN, NAN});
  there.run(product{2, 4, 0, false, false, nullptr, nullptr, added, to, false, true});
  expect_same_bits(there.get(to, 8), {0, 0, 0, 1, 0, 0, 0, 1});
  there.run(product{0, 4, 3, false, false, nullptr, right, added, nullptr, false, true});
}

/// Sum of products.
double dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

struct convolution_case {
  cpu::convolution_geometry geometry;
  std::int64_t batch;
};
const std::vector<convolution_case> convolutions{{{2, 5, 6, 3, 5, 6, 3, 1, 1}, 2},
                                                 {{1, 6, 6, 4, 3, 3, 2, 2, 0}, 3},
                                                 {{3, 1, 9, 2, 1, 5, 3, 2, 1, true, true}, 2}, // flat
                                                 {{4, 3, 3, 5, 3, 3, 1, 1, 0}, 1}};

/// y(n, row, column, out), summed as the definition says.
float convolved(const convolution_case& one, const std::vector<float>& x, const std::vector<float>& w,
                std::int64_t n, std::int64_t row, std::int64_t column, std::int64_t out) {
  const auto& g = one.geometry;
  double sum = 0.0;
  for (std::int64_t r = 0; r < g.kernel_height(); ++r)
    for (std::int64_t c = 0; c < g.kernel; ++c)
      for (std::int64_t in = 0; in < g.in_channels; ++in) {
        const std::int64_t y0 = row * g.stride_height() + r - g.padding_height();
        const std::int64_t x0 = column * g.stride + c - g.padding;
        if (y0 < 0 || y0 >= g.height || x0 < 0 || x0 >= g.width) continue;
        const auto at = ((n * g.height + y0) * g.width + x0) * g.in_channels + in;
        const auto weight = ((out * g.kernel_height() + r) * g.kernel + c) * g.in_channels + in;
        sum += static_cast<double>(x[static_cast<std::size_t>(at)]) *
               static_cast<double>(w[static_cast<std::size_t>(weight)]);
      }
  return static_cast<float>(sum);
}

struct convolution_data {
  std::int64_t x_size, w_size, y_size;
  std::vector<float> x, w, dy;
};
convolution_data data_for(const convolution_case& one) {
  const auto& g = one.geometry;
  const std::int64_t x = one.batch * g.height * g.width * g.in_channels;
  const std::int64_t w = g.out_channels * g.kernel_height() * g.kernel * g.in_channels;
  const std::int64_t y = one.batch * g.out_height * g.out_width * g.out_channels;
  return {x, w, y, some_floats(x, 1, true), some_floats(w, 2, true), some_floats(y, 3, true)};
}

TEST_P(library_steps, a_convolution_is_what_its_definition_says) {
  for (const auto& one : convolutions) {
    const auto& g = one.geometry;
    const auto data = data_for(one);
    on_device there(GetParam());
    float* const y = there.room<float>(data.y_size);
    there.run(convolution{convolution::pass::forward, g, one.batch, there.put(data.x), there.put(data.w), y});
    const auto got = there.get(y, data.y_size);
    std::size_t i = 0;
    for (std::int64_t n = 0; n < one.batch; ++n)
      for (std::int64_t row = 0; row < g.out_height; ++row)
        for (std::int64_t column = 0; column < g.out_width; ++column)
          for (std::int64_t out = 0; out < g.out_channels; ++out, ++i)
            ASSERT_NEAR(got[i], convolved(one, data.x, data.w, n, row, column, out), 1e-4F) << i;
  }
}

/// y is linear in x and in w, so dy . y = dx . x = dw . w.
TEST_P(library_steps, gradients_of_a_convolution_are_those_of_its_forward_pass) {
  for (const auto& one : convolutions) {
    const auto data = data_for(one);
    on_device there(GetParam());
    float *const x = there.put(data.x), *const w = there.put(data.w), *const dy = there.put(data.dy);
    float *const y = there.room<float>(data.y_size), *const dx = there.room<float>(data.x_size),
                 *const dw = there.room<float>(data.w_size);
    there.run(convolution{convolution::pass::forward, one.geometry, one.batch, x, w, y});
    there.run(convolution{convolution::pass::backward_data, one.geometry, one.batch, dx, w, dy});
    there.run(convolution{convolution::pass::backward_weights, one.geometry, one.batch, x, dw, dy});
    const double wanted = dot(there.get(y, data.y_size), data.dy);
    EXPECT_NEAR(dot(there.get(dx, data.x_size), data.x), wanted, 1e-3);
    EXPECT_NEAR(dot(there.get(dw, data.w_size), data.w), wanted, 1e-3);
  }
}

} // namespace
} // namespace dlrun::kernels::cuda
