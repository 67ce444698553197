// The corners of the loops that layers other than convolutions are made of.
#include "kernels/cpu/activations.hpp"
#include "kernels/cpu/average_pool.hpp"
#include "kernels/cpu/embedding.hpp"
#include "kernels/cpu/group_norm.hpp"
#include "kernels/cpu/softmax.hpp"
#include "kernels/cpu/strided.hpp"

#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

namespace dlrun::kernels::cpu {
namespace {

using floats = std::vector<float>;

constexpr std::array all_activations{activation::gelu,    activation::gelu_tanh, activation::silu,
                                     activation::sigmoid, activation::tanh,      activation::leaky_relu};

// A vector body and a scalar rest would show here: the same value at every place of arrays of every
// length.
TEST(activations, of_an_element_have_the_same_bits_wherever_it_lies) {
  for (const auto kind : all_activations)
    for (const float value : {-3.7F, -0.31F, 0.123F, 1.9F}) {
      const floats one{value}, gradient{0.7F};
      floats y(1), dx(1);
      activate(kind, 0.2F, one, y);
      activate_backward(kind, 0.2F, one, y, gradient, dx);
      for (std::size_t size = 1; size < 40; ++size) {
        const floats many(size, value), gradients(size, 0.7F);
        floats ys(size), dxs(size);
        activate(kind, 0.2F, many, ys);
        activate_backward(kind, 0.2F, many, ys, gradients, dxs);
        EXPECT_EQ(ys, floats(size, y[0]));
        EXPECT_EQ(dxs, floats(size, dx[0]));
      }
    }
}

TEST(activations, keep_nan_and_saturate_without_making_one) {
  for (const auto kind : all_activations) {
    const floats x{std::nanf(""), 200.0F, -200.0F, 0.0F};
    floats y(x), dx(x.size());
    activate(kind, 0.2F, y, y); // in place
    activate_backward(kind, 0.2F, x, y, floats(x.size(), 1.0F), dx);
    EXPECT_TRUE(std::isnan(y[0]));
    for (std::size_t i = 1; i < x.size(); ++i) {
      EXPECT_TRUE(std::isfinite(y[i])) << static_cast<int>(kind) << " " << x[i];
      EXPECT_TRUE(std::isfinite(dx[i])) << static_cast<int>(kind) << " " << x[i];
    }
  }
}

TEST(softmax, of_great_and_infinite_scores_does_not_overflow) {
  floats y(3);
  softmax(3, floats{3e38F, -3e38F, 3e38F}, y);
  EXPECT_EQ(y, (floats{0.5F, 0, 0.5F}));
  softmax(1, floats{7, -7, 0}, y);
  EXPECT_EQ(y, (floats{1, 1, 1}));
  softmax(3, floats{1, std::nanf(""), 2}, y);
  for (const float value : y) EXPECT_TRUE(std::isnan(value));
}

TEST(average_pool, of_the_whole_image_holds_where_the_mean_is_far_above_the_spread) {
  constexpr std::int64_t side = 100;
  floats x(side * side), y(1);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 10000.0F + (i % 2 == 0 ? 0.5F : -0.5F);
  const auto whole = adaptive_windows(side, 1);
  average_pool({1, side, side, whole, whole}, 1, x, y);
  EXPECT_EQ(y[0], 10000.0F);
}

TEST(average_pool, adaptive_windows_cover_every_pixel_once_where_they_divide) {
  const auto windows = adaptive_windows(12, 4);
  for (std::size_t i = 0; i < windows.size(); ++i) {
    EXPECT_EQ(windows[i].begin, static_cast<std::int64_t>(3 * i));
    EXPECT_EQ(windows[i].end, static_cast<std::int64_t>(3 * i + 3));
  }
  EXPECT_EQ(adaptive_windows(2, 3)[1].end, 2); // more windows than pixels: they overlap
  EXPECT_EQ(adaptive_windows(2, 3)[1].begin, 0);
}

TEST(group_norm, of_a_constant_is_its_bias_and_finite) {
  const group_geometry g{4, 2, 1, 1e-5F};
  floats y(8), mean(1), deviation(1);
  group_norm(g, 1, floats(8, 5.0F), floats{3, 4}, floats{1, 2}, y, mean, deviation);
  EXPECT_EQ(y, (floats{1, 2, 1, 2, 1, 2, 1, 2}));
  EXPECT_NEAR(deviation[0], 1 / std::sqrt(1e-5), 0.01);
}

TEST(group_norm, of_a_record_does_not_depend_on_its_neighbours) {
  const group_geometry g{3, 4, 2, 1e-5F};
  floats x(36);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
  floats all(36), one(12), mean(6), deviation(6);
  group_norm(g, 3, x, {}, {}, all, mean, deviation);
  group_norm(g, 1, std::span(x).subspan(12, 12), {}, {}, one, mean, deviation);
  EXPECT_EQ(one, floats(all.begin() + 12, all.begin() + 24));
}

TEST(embedding_backward, adds_what_one_row_gets_from_many_places) {
  const embedding_geometry g{2, 1};
  const std::vector<std::int64_t> indices{2, 0, 2, 2};
  floats table_gradient(4, 9.0F);
  embedding_backward(g, indices, floats{1, 10, 100, 1000}, table_gradient);
  EXPECT_EQ(table_gradient, (floats{10, 0, 1101, 0}));
}

TEST(columns, that_are_read_and_written_leave_the_others) {
  floats wide{1, 2, 3, 4, 5, 6}, narrow(4);
  read_columns({3, 1, 2}, wide, narrow);
  EXPECT_EQ(narrow, (floats{2, 3, 5, 6}));
  write_columns({3, 0, 2}, narrow, wide);
  EXPECT_EQ(wide, (floats{2, 3, 3, 5, 6, 6}));
}

TEST(columns_DeathTest, beyond_the_row_are_a_broken_invariant) {
  floats wide(6), narrow(4);
  EXPECT_DEATH(read_columns({3, 2, 2}, wide, narrow), "columns 2 to 4 of 3");
}

} // namespace
} // namespace dlrun::kernels::cpu
