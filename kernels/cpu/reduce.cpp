#include "kernels/cpu/reduce.hpp"

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

} // namespace dlrun::kernels::cpu
