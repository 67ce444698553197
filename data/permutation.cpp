#include "data/permutation.hpp"

#include <cmath>
#include <dlrun/check.hpp>

namespace dlrun::data {
namespace {

std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// A number in [0, bound) from 64 random bits, by their position in the range (D. Lemire, "Fast
/// Random Integer Generation in an Interval", 2019, without the rejection: the bias is below bound
/// / 2^64).
std::uint64_t scale(std::uint64_t bits, std::uint64_t bound) {
  __extension__ using uint128 = unsigned __int128;
  return static_cast<std::uint64_t>((uint128{bits} * bound) >> 64);
}

/// Smallest a with a * a >= size.
std::uint64_t side(std::uint64_t size) {
  auto a = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(size)));
  while (a * a < size) ++a;
  while (a > 1 && (a - 1) * (a - 1) >= size) --a;
  return a;
}

} // namespace

permutation::permutation(std::uint64_t seed, std::uint64_t epoch, std::uint64_t size)
    : size_(size)
    , a_(side(size))
    , b_((size + a_ - 1) / a_) {
  DLRUN_CHECK(size >= 1 && size <= std::uint64_t{1} << 62, "a permutation of {} records", size);
  const std::uint64_t base = mix(mix(seed) ^ (epoch + 0x632be59bd9b4e019U));
  for (std::size_t i = 0; i < keys_.size(); ++i) keys_[i] = mix(base + i * 0xd1342543de82ef95U);
}

std::uint64_t permutation::encipher(std::uint64_t index) const {
  std::uint64_t left = index % a_;
  std::uint64_t right = index / a_;
  for (std::size_t i = 0; i < keys_.size(); i += 2) {
    left += scale(mix(keys_[i] + right), a_);
    left = left >= a_ ? left - a_ : left;
    right += scale(mix(keys_[i + 1] + left), b_);
    right = right >= b_ ? right - b_ : right;
  }
  return right * a_ + left;
}

std::uint64_t permutation::operator()(std::uint64_t index) const {
  DLRUN_CHECK(index < size_, "index {} of a permutation of {}", index, size_);
  // The cycle through `index` comes back to it, so the walk ends; a * b < size + a makes a second
  // turn rare.
  do {
    index = encipher(index);
  } while (index >= size_);
  return index;
}

} // namespace dlrun::data
