#include "kernels/cpu/inner_product.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <vector>

namespace dlrun::kernels::cpu {
namespace {

using floats = std::vector<float>;

floats wave(std::size_t size, float frequency) {
  floats out(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = std::sin(frequency * static_cast<float>(i + 1));
  return out;
}

/// sum over k of a(row, k) * b(column, k), in double; `a_step` and `b_step` from one k to the next.
double dot(const float* a, std::size_t a_step, const float* b, std::size_t b_step, std::size_t size) {
  double sum = 0;
  for (std::size_t k = 0; k < size; ++k) sum += static_cast<double>(a[k * a_step]) * b[k * b_step];
  return sum;
}

void expect_equals_plain_loops(std::size_t batch, std::size_t in, std::size_t out, bool bias,
                               bool own_avx2_code) {
  const auto x = wave(batch * in, 0.7F), w = wave(out * in, 1.3F), b = wave(out, 2.1F),
             dy = wave(batch * out, 0.3F);
  floats y(batch * out, NAN), dw(w.size(), NAN), db(out, NAN), dx(x.size(), NAN);
  onednn context;
  context.own_avx2_code = own_avx2_code;
  inner_product product(context, static_cast<std::int64_t>(in), static_cast<std::int64_t>(out), bias);
  const auto n = static_cast<std::int64_t>(batch);
  product.forward(n, x.data(), w.data(), b.data(), y.data());
  product.backward(n, x.data(), w.data(), dy.data(), dw.data(), db.data(), dx.data());
  for (std::size_t r = 0; r < batch; ++r)
    for (std::size_t o = 0; o < out; ++o)
      ASSERT_NEAR(y[r * out + o], dot(&x[r * in], 1, &w[o * in], 1, in) + (bias ? b[o] : 0), 1e-4);
  for (std::size_t o = 0; o < out; ++o)
    for (std::size_t i = 0; i < in; ++i)
      ASSERT_NEAR(dw[o * in + i], dot(&dy[o], out, &x[i], in, batch), 1e-4);
  for (std::size_t r = 0; r < batch; ++r)
    for (std::size_t i = 0; i < in; ++i)
      ASSERT_NEAR(dx[r * in + i], dot(&dy[r * out], 1, &w[i], in, out), 1e-4);
  const float one = 1;
  for (std::size_t o = 0; bias && o < out; ++o) ASSERT_NEAR(db[o], dot(&dy[o], out, &one, 0, batch), 1e-4);
}

/// By oneDNN, and by what stands in for it on AVX2.
void expect_equals_plain_loops(std::size_t batch, std::size_t in, std::size_t out, bool bias) {
  for (const bool own_avx2_code : {false, true})
    expect_equals_plain_loops(batch, in, out, bias, own_avx2_code);
}

TEST(inner_product, equals_plain_loops) { expect_equals_plain_loops(32, 64, 48, true); }
TEST(inner_product, equals_plain_loops_for_odd_widths_without_bias) {
  expect_equals_plain_loops(5, 37, 11, false);
}
TEST(inner_product, equals_plain_loops_for_few_and_many_records_and_inputs) {
  for (const std::size_t batch : {15, 16, 17, 130}) {
    expect_equals_plain_loops(batch, 37, 11, false);
    expect_equals_plain_loops(batch, 3136, 10, true);
    expect_equals_plain_loops(batch, 1, 10, true);
    expect_equals_plain_loops(batch, 20, 1, false);
  }
}
TEST(inner_product, equals_plain_loops_for_single_records_inputs_and_outputs) {
  expect_equals_plain_loops(1, 20, 10, true);
  expect_equals_plain_loops(7, 1, 10, true);
  expect_equals_plain_loops(7, 20, 1, true);
}

} // namespace
} // namespace dlrun::kernels::cpu
