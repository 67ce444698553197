/// Numbers to compute with.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace dlrun::kernels::cpu {

/// `count` numbers of a normal distribution, the same for the same `seed`.
inline std::vector<float> drawn(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (auto& value : values) value = normal(random);
  return values;
}

} // namespace dlrun::kernels::cpu
