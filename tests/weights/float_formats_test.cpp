#include "weights/float_formats.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace dlrun::weights {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

TEST(float_formats, float16_is_exact_in_every_class_of_numbers) {
  EXPECT_EQ(from_float16(0x3c00), 1.0F);
  EXPECT_EQ(from_float16(0xc000), -2.0F);
  EXPECT_EQ(from_float16(0x7bff), 65504.0F) << "the largest";
  EXPECT_EQ(from_float16(0x0400), std::ldexp(1.0F, -14)) << "the smallest that is normal";
  EXPECT_EQ(from_float16(0x03ff), std::ldexp(1023.0F, -24)) << "the largest that is not";
  EXPECT_EQ(from_float16(0x8001), -std::ldexp(1.0F, -24));
  EXPECT_EQ(from_float16(0x3555), 0.333251953125F);
  EXPECT_EQ(from_float16(0x7c00), infinity);
  EXPECT_EQ(from_float16(0xfc00), -infinity);
  EXPECT_TRUE(std::isnan(from_float16(0x7e00)));
  EXPECT_TRUE(std::signbit(from_float16(0x8000)));
}

TEST(float_formats, bfloat16_is_the_upper_half_of_a_float) {
  EXPECT_EQ(from_bfloat16(0x3f80), 1.0F);
  EXPECT_EQ(from_bfloat16(0xc040), -3.0F);
  EXPECT_EQ(from_bfloat16(0x7f80), infinity);
  EXPECT_TRUE(std::isnan(from_bfloat16(0x7fc0)));
  EXPECT_EQ(from_bfloat16(0x0001), std::ldexp(1.0F, -133));
}

} // namespace
} // namespace dlrun::weights
