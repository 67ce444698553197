/// Floats of 16 bits, as weights are often stored.
#pragma once

#include <bit>
#include <cstdint>

namespace dlrun::weights {

/// bfloat16 is the upper half of a float.
constexpr float from_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// IEEE 754 binary16: 1 bit of sign, 5 of exponent with bias 15, 10 of fraction. Exact for each of
/// its values.
constexpr float from_float16(std::uint16_t bits) {
  constexpr std::uint32_t exponent_max = 0x1f;
  constexpr std::uint32_t rebias = 127 - 15;
  const auto sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t exponent = (bits >> 10) & exponent_max;
  const std::uint32_t fraction = bits & 0x3ffU;
  if (exponent == exponent_max) return std::bit_cast<float>(sign | 0x7f800000U | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + rebias) << 23 | fraction << 13);
  constexpr float subnormal_unit = 1.0F / 16777216.0F; // 2^-24
  const float magnitude = static_cast<float>(fraction) * subnormal_unit;
  return sign == 0 ? magnitude : -magnitude;
}

} // namespace dlrun::weights
