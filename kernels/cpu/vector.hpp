/// A register of floats, for code that is written once for each width of vectors.
#pragma once

#include <cstddef>
#include <immintrin.h>
#include <utility>

namespace dlrun::kernels::cpu {

/// Eight floats: AVX2, which is the baseline that kernels are compiled for. Addresses need no
/// alignment.
struct floats8 {
  static constexpr std::size_t lanes = 8;
  __m256 value;

  static floats8 zero() { return {_mm256_setzero_ps()}; }
  static floats8 load(const float* from) { return {_mm256_loadu_ps(from)}; }
  static floats8 all(float number) { return {_mm256_set1_ps(number)}; }
  void store(float* to) const { _mm256_storeu_ps(to, value); }
  /// a * b + c, rounded once.
  static floats8 multiply_add(floats8 a, floats8 b, floats8 c) {
    return {_mm256_fmadd_ps(a.value, b.value, c.value)};
  }
  floats8 operator+(floats8 other) const { return {_mm256_add_ps(value, other.value)}; }
};

/// body(0), ..., body(Count - 1), with indices that are constants: in a loop an array of vectors
/// would not stay in registers.
template <std::size_t Count, class Body>
[[gnu::always_inline]] inline void unrolled(Body&& body) {
  [&]<std::size_t... i>(std::index_sequence<i...>) { (body(std::integral_constant<std::size_t, i>{}), ...); }
  (std::make_index_sequence<Count>{});
}

} // namespace dlrun::kernels::cpu
