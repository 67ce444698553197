// Sums, updates, activations, transposition, statistics: the loops without oneDNN.
#include "kernels/cpu/batch_norm.hpp"
#include "kernels/cpu/elementwise.hpp"
#include "kernels/cpu/permute.hpp"
#include "kernels/cpu/reduce.hpp"
#include "kernels/cpu/update.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <vector>

namespace dlrun::kernels::cpu {
namespace {

using floats = std::vector<float>;

floats ramp(std::size_t size, float first, float step) {
  floats out(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = first + step * static_cast<float>(i);
  return out;
}

TEST(add, sums_element_by_element_also_in_place) {
  for (const std::size_t size : {0U, 1U, 7U, 8U, 1000U}) {
    const auto a = ramp(size, 1, 0.3F), b = ramp(size, -2, 0.7F);
    floats out(size), swapped(size), in_place = a;
    add(a, b, out);
    add(b, a, swapped);
    add(in_place, b, in_place);
    for (std::size_t i = 0; i < size; ++i) EXPECT_EQ(out[i], a[i] + b[i]);
    EXPECT_EQ(out, swapped);
    EXPECT_EQ(out, in_place);
  }
}

TEST(add_DeathTest, of_different_sizes_is_a_broken_invariant) {
  floats a(3), b(4);
  EXPECT_DEATH(add(a, b, a), "sizes 3, 4 and 3 differ");
}

// With contraction (an FMA) the product would not be rounded before the difference: 1 - (1 + e)(1 -
// e) is e^2, not 0.
TEST(sgd, rounds_the_product_before_the_difference) {
  const float e = 0x1p-13F;
  floats out(9);
  sgd(1 + e, 0, {}, floats(9, 1 - e), floats(9, 1.0F), out);
  EXPECT_EQ(out, floats(9, 0.0F));
}

TEST(sgd_momentum, starts_with_the_gradient_itself) {
  floats out(2), velocity(2, 0.0F);
  sgd_momentum({.lr = 0.5F, .momentum = 0.9F}, {.scale = 0.25F}, floats{4, -8}, floats{1, 1}, out, velocity);
  EXPECT_EQ(velocity, (floats{1, -2}));
  EXPECT_EQ(out, (floats{0.5F, 2}));
}

TEST(adam, a_gradient_of_zero_moves_nothing) {
  const adam_step step{0.9F, 0.999F, 0.1F, 0.001F, 1.0F, 1.0F, 1e-8F};
  floats parameters = ramp(20, -1, 0.1F), m(20), v(20);
  const auto before = parameters;
  adam(step, {}, floats(20, 0.0F), parameters, parameters, m, v, {});
  EXPECT_EQ(parameters, before);
}

TEST(relu, cuts_below_zero_and_keeps_nan) {
  floats x{-1, 0, -0.0F, 2, -INFINITY, INFINITY, NAN};
  relu(x, x);
  EXPECT_EQ(floats(x.begin(), x.end() - 1), (floats{0, 0, 0, 2, 0, INFINITY}));
  EXPECT_TRUE(std::isnan(x.back()));
}

TEST(relu_backward, passes_the_gradient_where_the_output_is_above_zero) {
  floats dx(3);
  relu_backward(floats{0, 2, 0}, floats{5, 6, 7}, dx);
  EXPECT_EQ(dx, (floats{0, 6, 0}));
}

TEST(transpose, turns_every_matrix_and_twice_is_the_identity) {
  for (const auto& [rows, columns] : {std::pair{1, 5}, {3, 49}, {49, 3}, {16, 16}, {17, 33}}) {
    const auto size = static_cast<std::size_t>(2 * rows * columns);
    const auto from = ramp(size, 0, 1);
    floats to(size), back(size);
    transpose(2, rows, columns, from, to);
    EXPECT_EQ(to[static_cast<std::size_t>(rows * columns)], from[static_cast<std::size_t>(rows * columns)]);
    EXPECT_EQ(to[static_cast<std::size_t>(rows - 1)], from[static_cast<std::size_t>((rows - 1) * columns)]);
    transpose(2, columns, rows, to, back);
    EXPECT_EQ(back, from);
  }
}

TEST(batch_statistics, hold_where_the_mean_is_far_above_the_spread) {
  constexpr std::int64_t rows = 100000;
  floats x(rows);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1000.0F + (i % 2 == 0 ? 0.25F : -0.25F);
  floats mean(1), variance(1), inverse(1);
  batch_statistics(rows, 1e-5F, x, {mean, variance, inverse});
  EXPECT_EQ(mean[0], 1000.0F);
  EXPECT_NEAR(variance[0], 0.0625 * rows / (rows - 1), 1e-8);
  EXPECT_NEAR(inverse[0], 1 / std::sqrt(0.0625 + 1e-5), 1e-5);
}

TEST(batch_statistics, of_a_constant_are_finite) {
  floats mean(3), variance(3), inverse(3);
  batch_statistics(2, 1e-5F, floats(6, 7.0F), {mean, variance, inverse});
  EXPECT_EQ(variance, floats(3, 0.0F));
  EXPECT_NEAR(inverse[1], 1 / std::sqrt(1e-5), 0.01);
}

TEST(running_statistic, keeps_and_takes_by_momentum) {
  floats out(1);
  running_statistic(1.0F, 0.5F, floats{6}, floats{100}, out);
  EXPECT_EQ(out[0], 3.0F);
}

} // namespace
} // namespace dlrun::kernels::cpu
