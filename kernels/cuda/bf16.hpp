/// Numbers of 16 bits with the range of a float.
#pragma once

#include "kernels/cuda/precision.hpp"

#include <bit>
#include <concepts>
#include <cstdint>

namespace dlrun::kernels::cuda {

/// The upper half of a float: 8 bits of mantissa, of which 7 are stored.
struct bf16 {
  std::uint16_t bits;
};

/// Exact.
constexpr float widened(bf16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16U);
}
constexpr float widened(float value) { return value; }

/// To nearest, and to even where two are as near; what is beyond the largest becomes infinite, and
/// a NaN stays one.
constexpr bf16 rounded_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  constexpr std::uint32_t quiet = 0x40; // a NaN whose upper half would be infinity
  if (value != value) return {static_cast<std::uint16_t>(bits >> 16U | quiet)};
  return {static_cast<std::uint16_t>((bits + 0x7FFFU + (bits >> 16U & 1U)) >> 16U)};
}

/// `value` as it is stored: a float itself.
template <class Number>
constexpr Number stored_as(float value) {
  if constexpr (std::same_as<Number, bf16>)
    return rounded_to_bf16(value);
  else
    return value;
}

/// Calls action(Number{}) with what activations are stored as.
template <class Action>
void with_number(precision one, Action action) {
  if (one == precision::bf16)
    action(bf16{});
  else
    action(float{});
}

} // namespace dlrun::kernels::cuda
