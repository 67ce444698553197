/// How a device computes, and how it stores activations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dlrun::kernels::cuda {

/// How products of matrices and convolutions are computed, and activations stored. All else is fp32
/// always.
enum class precision : std::uint8_t {
  fp32, ///< single precision throughout
  tf32, ///< factors are rounded to 10 bits of mantissa, on tensor cores; sums are single precision
  bf16  ///< factors and activations are bf16 (bf16.hpp), on tensor cores; sums are single precision
};

constexpr std::string_view name_of(precision one) {
  switch (one) {
  case precision::fp32: break;
  case precision::tf32: return "tf32";
  case precision::bf16: return "bf16";
  }
  return "fp32";
}

/// Of one number of an activation.
constexpr std::size_t activation_bytes(precision one) { return one == precision::bf16 ? 2 : 4; }

} // namespace dlrun::kernels::cuda
