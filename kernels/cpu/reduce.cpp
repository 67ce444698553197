#include "kernels/cpu/reduce.hpp"

#include <bit>
#include <cstdint>
#include <dlrun/check.hpp>

namespace dlrun::kernels::cpu {

void add(std::span<const float> a, std::span<const float> b, std::span<float> out) {
  DLRUN_CHECK(a.size() == b.size() && a.size() == out.size(), "sizes {}, {} and {} differ", a.size(),
              b.size(), out.size());
  const float* const x = a.data();
  const float* const y = b.data();
  float* const z = out.data();
#pragma GCC ivdep // each element on its own: spans are disjoint or the same
  for (std::size_t i = 0; i < out.size(); ++i) z[i] = x[i] + y[i];
}

/// A float is NaN or infinite when all bits of its exponent are set; then, and only then, adding
/// one to the exponent carries into the sign's place.
bool all_finite(std::span<const float> values) {
  constexpr std::uint32_t without_sign = 0x7fffffff;
  constexpr std::uint32_t one_in_exponent = 0x00800000;
  const float* const x = values.data();
  std::uint32_t carried = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    carried |= (std::bit_cast<std::uint32_t>(x[i]) & without_sign) + one_in_exponent;
  return (carried & ~without_sign) == 0;
}

} // namespace dlrun::kernels::cpu
