/// Seeded random numbers that are the same with every compiler and standard library.
#pragma once

#include "actors/protocol/time.hpp"

#include <cstdint>
#include <dlrun/check.hpp>
#include <initializer_list>
#include <vector>

namespace dlrun::simulation {

/// Mixes 64 bits well (splitmix64's finalizer, Steele et al. 2014).
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

class random_source {
public:
  explicit random_source(std::uint64_t seed)
      : state_(mix(seed)) {}

  std::uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15U); }
  /// In [0, 1).
  double real() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  double between(double low, double high) { return low + (high - low) * real(); }
  /// In [0, bound), bound > 0.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  bool chance(double probability) { return probability > 0 && real() < probability; }
  protocol::duration milliseconds(double low, double high) {
    return protocol::duration(static_cast<std::int64_t>(1000 * between(low, high)));
  }
  template <class T>
  T pick(std::initializer_list<T> choices) {
    return *(choices.begin() + below(choices.size()));
  }
  template <class T>
  T& pick(std::vector<T>& choices) {
    DLRUN_CHECK(!choices.empty(), "nothing to choose from");
    return choices[below(choices.size())];
  }

private:
  std::uint64_t state_;
};

} // namespace dlrun::simulation
