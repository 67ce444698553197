#include "kernels/cuda/stand_in/library_steps.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

namespace dlrun::kernels::cuda {
namespace {

/// A product of two factors, in double.
double times(float a, float b, precision arithmetic) {
  if (arithmetic == precision::tf32) return times(rounded_to_tf32(a), rounded_to_tf32(b), precision::fp32);
  return static_cast<double>(a) * static_cast<double>(b);
}

void compute(const product& s, precision arithmetic) {
  const std::int64_t a_row = s.transpose_a ? 1 : s.k, a_step = s.transpose_a ? s.m : 1;
  const std::int64_t b_column = s.transpose_b ? s.k : 1, b_step = s.transpose_b ? 1 : s.n;
  for (std::int64_t i = 0; i < s.m; ++i)
    for (std::int64_t j = 0; j < s.n; ++j) {
      double sum = s.row == nullptr ? 0.0 : static_cast<double>(s.row[j]);
      for (std::int64_t l = 0; l < s.k; ++l)
        sum += times(s.a[i * a_row + l * a_step], s.b[j * b_column + l * b_step], arithmetic);
      s.c[i * s.n + j] = static_cast<float>(sum);
    }
}

/// Calls visit(index in x, index in w, index in y) for each product of the forward pass: y is the
/// sum of x times w.
template <class Visit>
void each_product(const convolution& s, Visit visit) {
  const auto& g = s.geometry;
  const std::int64_t kernel_height = g.kernel_height();
  const auto pixel = [&](std::int64_t y_pixel, std::int64_t x_pixel, std::int64_t w_pixel) {
    for (std::int64_t out = 0; out < g.out_channels; ++out)
      for (std::int64_t in = 0; in < g.in_channels; ++in)
        visit(x_pixel * g.in_channels + in, (out * kernel_height * g.kernel + w_pixel) * g.in_channels + in,
              y_pixel * g.out_channels + out);
  };
  const auto window = [&](std::int64_t n, std::int64_t row, std::int64_t column) {
    for (std::int64_t r = 0; r < kernel_height; ++r)
      for (std::int64_t c = 0; c < g.kernel; ++c) {
        const std::int64_t x_row = row * g.stride_height() - g.padding_height() + r;
        const std::int64_t x_column = column * g.stride - g.padding + c;
        if (x_row < 0 || x_row >= g.height || x_column < 0 || x_column >= g.width) continue;
        pixel((n * g.out_height + row) * g.out_width + column, (n * g.height + x_row) * g.width + x_column,
              r * g.kernel + c);
      }
  };
  for (std::int64_t n = 0; n < s.batch; ++n)
    for (std::int64_t row = 0; row < g.out_height; ++row)
      for (std::int64_t column = 0; column < g.out_width; ++column) window(n, row, column);
}

/// Sums in double of as many floats as there are at `to`.
template <class Add>
void sum_to(float* to, std::int64_t count, Add add) {
  std::vector<double> sums(static_cast<std::size_t>(count), 0.0);
  add(sums.data());
  std::ranges::transform(sums, to, [](double sum) { return static_cast<float>(sum); });
}

void compute(const convolution& s, precision arithmetic) {
  const auto& g = s.geometry;
  switch (s.which) {
  case convolution::pass::forward:
    return sum_to(s.y, s.batch * g.out_height * g.out_width * g.out_channels, [&](double* y) {
      each_product(s, [&](auto ix, auto iw, auto iy) { y[iy] += times(s.x[ix], s.w[iw], arithmetic); });
    });
  case convolution::pass::backward_data:
    return sum_to(s.x, s.batch * g.height * g.width * g.in_channels, [&](double* x) {
      each_product(s, [&](auto ix, auto iw, auto iy) { x[ix] += times(s.y[iy], s.w[iw], arithmetic); });
    });
  case convolution::pass::backward_weights:
    return sum_to(s.w, g.out_channels * g.kernel_height() * g.kernel * g.in_channels, [&](double* w) {
      each_product(s, [&](auto ix, auto iw, auto iy) { w[iw] += times(s.x[ix], s.y[iy], arithmetic); });
    });
  }
}

} // namespace

float rounded_to_tf32(float value) {
  if (!std::isfinite(value)) return value;
  constexpr std::uint32_t dropped = 13; // of 23 bits
  auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t is_odd = bits >> dropped & 1U;
  bits += (1U << (dropped - 1)) - 1U + is_odd; // may carry into the exponent, as it should
  return std::bit_cast<float>(bits >> dropped << dropped);
}

void run_library(queue on, const product& what, precision arithmetic) {
  on->put([=] { compute(what, arithmetic); });
}
void run_library(queue on, const convolution& what, precision arithmetic) {
  on->put([=] { compute(what, arithmetic); });
}

} // namespace dlrun::kernels::cuda
