#include "kernels/cpu/elementwise.hpp"
#include "kernels/cpu/max_pool.hpp"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace dlrun::kernels::cpu {
namespace {

struct pooled {
  std::vector<float> y;
  std::vector<std::int32_t> winner;
};

pooled pool(const pool_geometry& g, std::int64_t batch, const std::vector<float>& x) {
  const auto size = static_cast<std::size_t>(batch * g.out_height * g.out_width * g.channels);
  pooled out{std::vector<float>(size), std::vector<std::int32_t>(size)};
  max_pool(g, batch, x, out.y, out.winner);
  return out;
}

TEST(max_pool, takes_the_greatest_of_each_window_and_channel) {
  const pool_geometry g{2, 2, 4, 1, 2, 2, 2, 0};
  //                 pixel: 0       1       2      3       4       5       6       7     (two channels each)
  const auto out = pool(g, 1, {1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 0, -9, 9, -1, 8, -2});
  EXPECT_EQ(out.y, (std::vector<float>{5, -1, 9, -1}));
  EXPECT_EQ(out.winner, (std::vector<std::int32_t>{4, 0, 6, 6}));
}

TEST(max_pool, the_first_of_equals_wins) {
  EXPECT_EQ(pool({1, 2, 2, 1, 1, 2, 2, 0}, 1, {3, 3, 3, 3}).winner[0], 0);
  EXPECT_EQ(pool({1, 2, 2, 1, 1, 2, 2, 0}, 1, {0, -0.0F, 3, 3}).winner[0], 2);
}

TEST(max_pool, a_nan_wins_wherever_it_stands) {
  for (std::size_t place = 0; place < 4; ++place) {
    std::vector<float> x{1, 2, INFINITY, 4};
    x[place] = std::nanf("");
    const auto out = pool({1, 2, 2, 1, 1, 2, 2, 0}, 1, x);
    EXPECT_TRUE(std::isnan(out.y[0])) << place;
    EXPECT_EQ(out.winner[0], static_cast<std::int32_t>(place));
  }
}

TEST(max_pool, padding_never_wins) {
  const pool_geometry g{1, 2, 2, 2, 2, 2, 2, 1};
  EXPECT_EQ(pool(g, 1, {-5, -6, -7, -INFINITY}).y, (std::vector<float>{-5, -6, -7, -INFINITY}));
}

/// Window sizes with code of their own and without, overlapping, with a rest, padded.
const std::vector<pool_geometry> geometries{{5, 6, 8, 3, 4, 2, 2, 0}, {16, 7, 7, 6, 6, 2, 1, 0},
                                            {9, 7, 9, 3, 4, 3, 2, 0}, {8, 8, 8, 4, 4, 3, 2, 1},
                                            {3, 9, 9, 2, 2, 4, 4, 0}, {4, 5, 5, 2, 2, 2, 3, 0}};

/// Values of which many are equal, half are not above 0, and some are NaN or -0.
std::vector<float> values_for(const pool_geometry& g, std::int64_t batch) {
  std::mt19937 random(3);
  std::vector<float> x(static_cast<std::size_t>(batch * g.height * g.width * g.channels));
  for (auto& value : x) {
    const auto drawn = random() % 40;
    value = drawn == 0 ? NAN : drawn == 1 ? -0.0F : static_cast<float>(drawn % 9) - 4.0F;
  }
  return x;
}

std::vector<std::uint32_t> bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> out;
  for (const float value : values) out.push_back(std::bit_cast<std::uint32_t>(value));
  return out;
}

TEST(max_pool, of_relu_has_the_bits_of_relu_and_then_the_pool) {
  for (auto g : geometries) {
    const auto x = values_for(g, 3);
    std::vector<float> positive(x.size());
    relu(x, positive);
    const auto apart = pool(g, 3, positive);
    g.of_relu = true;
    const auto together = pool(g, 3, x);
    EXPECT_EQ(bits(together.y), bits(apart.y)) << g.kernel << " by " << g.stride;
    const auto dy = values_for({g.channels, g.out_height, g.out_width}, 3);
    std::vector<float> of_relu(x.size()), expected(x.size()), dx(x.size());
    max_pool_backward(g, 3, apart.winner, dy, of_relu);
    relu_backward(positive, of_relu, expected);
    max_pool_backward(g, 3, together.winner, dy, dx);
    EXPECT_EQ(bits(dx), bits(expected)) << g.kernel << " by " << g.stride;
  }
}

/// The same numbers with the channels in blocks.
std::vector<float> in_blocks(const pool_geometry& g, const std::vector<float>& x, std::int64_t block) {
  std::vector<float> out;
  for (std::int64_t n = 0, pixels = g.height * g.width; out.size() < x.size(); ++n)
    for (std::int64_t first = 0; first < g.channels; first += block)
      for (std::int64_t pixel = 0; pixel < pixels; ++pixel)
        for (std::int64_t c = first; c < first + block; ++c)
          out.push_back(x[static_cast<std::size_t>((n * pixels + pixel) * g.channels + c)]);
  return out;
}

TEST(max_pool, of_blocks_of_channels_has_the_same_bits) {
  for (const std::int64_t block : {16, 8})
    for (auto g : geometries) {
      g.channels = 2 * block;
      for (const bool of_relu : {false, true}) {
        g.of_relu = of_relu;
        g.block = 0;
        const auto x = values_for(g, 3);
        const auto apart = pool(g, 3, x);
        const auto dy = values_for({g.channels, g.out_height, g.out_width}, 3);
        std::vector<float> dx(x.size(), NAN), dx_in_blocks(x.size(), NAN);
        max_pool_backward(g, 3, apart.winner, dy, dx);
        g.block = block;
        const auto blocked = pool(g, 3, in_blocks(g, x, block));
        EXPECT_EQ(bits(blocked.y), bits(apart.y)) << block << ": " << g.kernel << " by " << g.stride;
        EXPECT_EQ(blocked.winner, apart.winner) << block << ": " << g.kernel << " by " << g.stride;
        max_pool_backward(g, 3, blocked.winner, dy, dx_in_blocks);
        EXPECT_EQ(bits(dx_in_blocks), bits(in_blocks(g, dx, block)))
            << block << ": " << g.kernel << " by " << g.stride;
      }
    }
}

TEST(max_pool_backward, adds_up_where_windows_overlap) {
  const pool_geometry wide{1, 2, 3, 1, 2, 2, 1, 0};
  const std::vector<float> x{0, 9, 0, 0, 1, 0}; // 2 x 3: pixel 1 wins both windows
  const auto out = pool(wide, 1, x);
  std::vector<float> dx(6, NAN);
  max_pool_backward(wide, 1, out.winner, std::vector<float>{2, 3}, dx);
  EXPECT_EQ(dx, (std::vector<float>{0, 5, 0, 0, 0, 0}));
}

TEST(max_pool_backward, clears_pixels_that_no_window_covers) {
  const pool_geometry g{1, 3, 3, 1, 1, 2, 2, 0};
  const auto out = pool(g, 2, {1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 8, 7, 6, 5, 4, 3, 2, 1});
  EXPECT_EQ(out.y, (std::vector<float>{5, 9}));
  std::vector<float> dx(18, NAN);
  max_pool_backward(g, 2, out.winner, std::vector<float>{1, 2}, dx);
  std::vector<float> expected(18, 0.0F);
  expected[4] = 1;
  expected[9] = 2;
  EXPECT_EQ(dx, expected);
}

} // namespace
} // namespace dlrun::kernels::cpu
