#include "kernels/cpu/cross_entropy.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

namespace dlrun::kernels::cpu {
namespace {

TEST(cross_entropy, sums_losses_over_the_rows) {
  const std::vector<float> scores{1, 2, 3, 0, 0, 0};
  std::vector<float> gradient(6);
  const double loss = cross_entropy(scores, std::vector<std::int32_t>{2, 1}, 3, {}, gradient);
  const double first = std::log(std::exp(1.0) + std::exp(2.0) + std::exp(3.0)) - 3;
  EXPECT_NEAR(loss, first + std::log(3.0), 1e-12);
  EXPECT_NEAR(gradient[2], std::exp(-first) - 1, 1e-6);
  EXPECT_NEAR(gradient[4], 1.0 / 3 - 1, 1e-6);
  EXPECT_NEAR(gradient[0] + gradient[1] + gradient[2], 0, 1e-6);
}

TEST(cross_entropy, great_scores_do_not_overflow) {
  const std::vector<float> scores{3e38F, -3e38F, 1e4F, 1e4F};
  std::vector<float> gradient(4);
  const double loss = cross_entropy(scores, std::vector<std::int32_t>{0, 1}, 2, {}, gradient);
  EXPECT_NEAR(loss, std::log(2.0), 1e-6);
  EXPECT_EQ(gradient[0], 0.0F);
  EXPECT_EQ(gradient[1], 0.0F);
}

TEST(cross_entropy, infinite_or_missing_numbers_show_in_the_loss) {
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()})
    for (std::size_t place = 0; place < 3; ++place) {
      std::vector<float> scores{1, 1, 1};
      scores[place] = bad;
      for (const std::int32_t label : {0, 1, 2})
        EXPECT_FALSE(std::isfinite(cross_entropy(scores, std::vector<std::int32_t>{label}, 3, {}, {})));
    }
}

TEST(cross_entropy, one_class_has_no_loss) {
  std::vector<float> gradient(2, 5.0F);
  EXPECT_EQ(cross_entropy(std::vector<float>{4, -4}, std::vector<std::int32_t>{0, 0}, 1, {}, gradient), 0.0);
  EXPECT_EQ(gradient, (std::vector<float>{0, 0}));
}

} // namespace
} // namespace dlrun::kernels::cpu
