/// Doubles as messages and journals carry them: CAF corrupts floats on the wire, bit patterns it
/// does not.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace dlrun::protocol {

/// std::bit_cast of each.
inline std::vector<std::uint64_t> to_bits(std::span<const double> values) {
  std::vector<std::uint64_t> bits(values.size());
  std::ranges::transform(values, bits.begin(),
                         [](double value) { return std::bit_cast<std::uint64_t>(value); });
  return bits;
}

/// The doubles again.
inline std::vector<double> from_bits(std::span<const std::uint64_t> bits) {
  std::vector<double> values(bits.size());
  std::ranges::transform(bits, values.begin(), [](std::uint64_t one) { return std::bit_cast<double>(one); });
  return values;
}

} // namespace dlrun::protocol
