/// A seeded shuffle that needs no memory.
#pragma once

#include <array>
#include <cstdint>

namespace dlrun::data {

/// A pseudo-random permutation of [0, size), evaluated at any place in O(1). Generalised Feistel
/// network on Z_a x Z_b with a * b >= size just above it, with cycle walking for results outside
/// (J. Black, P. Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002, sections 3 and 4).
/// The round function is the SplitMix64 finaliser (Steele, Lea, Flood, "Fast Splittable
/// Pseudorandom Number Generators", OOPSLA 2014) of (round key + half); round keys are that hash of
/// (seed, epoch, round): a counter, no state. A shuffle, not a cipher: it spreads records well and
/// protects nothing.
class permutation {
public:
  /// `size` must be in [1, 2^62].
  permutation(std::uint64_t seed, std::uint64_t epoch, std::uint64_t size);

  /// Where `index` goes. `index` must be < size.
  std::uint64_t operator()(std::uint64_t index) const;

private:
  static constexpr int rounds = 8;

  std::uint64_t encipher(std::uint64_t index) const;

  std::uint64_t size_;
  std::uint64_t a_;
  std::uint64_t b_;
  std::array<std::uint64_t, rounds> keys_{};
};

} // namespace dlrun::data
