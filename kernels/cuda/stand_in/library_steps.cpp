#include "kernels/cuda/stand_in/library_steps.hpp"

#include "kernels/cuda/bf16.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <vector>

namespace dlrun::kernels::cuda {
namespace {

/// A product of two factors, in double.
template <class Number>
double times(Number a, Number b, precision arithmetic) {
  if (arithmetic == precision::tf32)
    return times(rounded_to_tf32(widened(a)), rounded_to_tf32(widened(b)), precision::fp32);
  return static_cast<double>(widened(a)) * static_cast<double>(widened(b));
}

/// With factors and results of these types. A row is added to a sum before that is a float, and to
/// what is bf16 after it was rounded.
template <class Number, class Result>
void compute(const product& s, precision arithmetic) {
  constexpr bool row_first = std::same_as<Result, float>;
  const auto *const a = static_cast<const Number*>(s.a), *const b = static_cast<const Number*>(s.b);
  const std::int64_t a_row = s.transpose_a ? 1 : s.k, a_step = s.transpose_a ? s.m : 1;
  const std::int64_t b_column = s.transpose_b ? s.k : 1, b_step = s.transpose_b ? 1 : s.n;
  for (std::int64_t i = 0; i < s.m; ++i)
    for (std::int64_t j = 0; j < s.n; ++j) {
      double sum = row_first && s.row != nullptr ? static_cast<double>(s.row[j]) : 0.0;
      for (std::int64_t l = 0; l < s.k; ++l)
        sum += times(a[i * a_row + l * a_step], b[j * b_column + l * b_step], arithmetic);
      auto rounded = stored_as<Result>(static_cast<float>(sum));
      if (!row_first && s.row != nullptr) rounded = stored_as<Result>(widened(rounded) + s.row[j]);
      if (s.relu && widened(rounded) <= 0.0F) rounded = stored_as<Result>(0.0F);
      static_cast<Result*>(s.c)[i * s.n + j] = rounded;
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

/// Sums in double of as many numbers as there are at `to`.
template <class Number, class Add>
void sum_to(void* to, std::int64_t count, Add add) {
  std::vector<double> sums(static_cast<std::size_t>(count), 0.0);
  add(sums.data());
  std::ranges::transform(sums, static_cast<Number*>(to),
                         [](double sum) { return stored_as<Number>(static_cast<float>(sum)); });
}

template <class Number>
void compute(const convolution& s, precision arithmetic) {
  const auto& g = s.geometry;
  const auto *const x = static_cast<const Number*>(s.x), *const w = static_cast<const Number*>(s.w),
                    *const y = static_cast<const Number*>(s.y);
  switch (s.which) {
  case convolution::pass::forward:
    return sum_to<Number>(s.y, s.batch * g.out_height * g.out_width * g.out_channels, [&](double* to) {
      each_product(s, [&](auto ix, auto iw, auto iy) { to[iy] += times(x[ix], w[iw], arithmetic); });
    });
  case convolution::pass::backward_data:
    return sum_to<Number>(s.x, s.batch * g.height * g.width * g.in_channels, [&](double* to) {
      each_product(s, [&](auto ix, auto iw, auto iy) { to[ix] += times(y[iy], w[iw], arithmetic); });
    });
  case convolution::pass::backward_weights:
    return sum_to<Number>(
        s.w, g.out_channels * g.kernel_height() * g.kernel * g.in_channels, [&](double* to) {
          each_product(s, [&](auto ix, auto iw, auto iy) { to[iw] += times(x[ix], y[iy], arithmetic); });
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
  with_number(arithmetic, [&]<class Number>(Number) {
    on->put([=] {
      if (what.c_is_floats)
        compute<Number, float>(what, arithmetic);
      else
        compute<Number, Number>(what, arithmetic);
    });
  });
}
void run_library(queue on, const convolution& what, precision arithmetic) {
  with_number(arithmetic, [&]<class Number>(Number) { on->put([=] { compute<Number>(what, arithmetic); }); });
}

} // namespace dlrun::kernels::cuda
