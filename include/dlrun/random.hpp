/// Philox4x32-10: a random generator without state. Each number of each stream can be computed by
/// itself, in any order, in any process.
#pragma once

#include <array>
#include <cstdint>

namespace dlrun {

/// The block function of the generator: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random
/// numbers: as easy as 1, 2, 3" (SC 2011), the 4x32 variant with 10 rounds.
struct philox4x32 {
  /// Position in the stream.
  using counter = std::array<std::uint32_t, 4>;
  /// Names the stream.
  using key = std::array<std::uint32_t, 2>;

  /// Four random words, a pure function of counter and key.
  static constexpr counter generate(counter c, key k) {
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t product0 = std::uint64_t{0xD2511F53} * c[0];
      const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * c[2];
      c = {static_cast<std::uint32_t>(product1 >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(product1),
           static_cast<std::uint32_t>(product0 >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(product0)};
      k[0] += 0x9E3779B9;
      k[1] += 0xBB67AE85;
    }
    return c;
  }
};

/// Purpose of a stream of random numbers. It is part of the name of the stream, so two purposes
/// never share one.
enum class random_purpose : std::uint32_t {
  initialiser = 1,
  dropout = 2,
  augmentation = 3,
  split = 4,
  custom = 5, ///< layers of a program's own
};

/// One stream of random words, named by (seed, purpose, a, b, c). A first application of Philox
/// makes the key of the stream from its name; a second one counts through the stream. Immutable.
class random_stream {
public:
  /// `a`, `b`, `c` name the stream among those of its purpose, e.g. step, slot and layer.
  constexpr random_stream(std::uint64_t seed, random_purpose purpose, std::uint64_t a, std::uint32_t b,
                          std::uint32_t c)
      : last_word_(c) {
    const auto name = philox4x32::generate({low(a), high(a), b, static_cast<std::uint32_t>(purpose)},
                                           {low(seed), high(seed)});
    key_ = {name[0], name[1]};
    third_word_ = name[2];
  }

  /// Words 4 * index .. 4 * index + 3 of the stream.
  constexpr std::array<std::uint32_t, 4> words(std::uint64_t index) const {
    return philox4x32::generate({low(index), high(index), third_word_, last_word_}, key_);
  }

  /// The top 24 bits of a word as a float in [0, 1): exact, so the same everywhere.
  static constexpr float uniform(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24F; }

private:
  static constexpr std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
  static constexpr std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

  philox4x32::key key_{};
  std::uint32_t third_word_ = 0;
  std::uint32_t last_word_;
};

} // namespace dlrun
