/// One flipped bit, and what came of it.
#pragma once

#include "tests/flipped_bits/bit_flip.hpp"
#include "tests/flipped_bits/trained_shard.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace dlrun::flipped_bits {

enum class verdict : std::uint8_t {
  caught,   ///< somebody noticed, and nothing wrong was used
  harmless, ///< nobody noticed, and nothing was wrong
  wrong
};

struct outcome {
  place where{};
  verdict what{};
  std::string how; ///< for people
};

/// Flips one bit in all that happens to a copy of `shard`, and looks whether the copy becomes
/// whole, what is in it, and what a PS shard that starts from it has. A seed is a case.
class flip_cases {
public:
  /// In folders of its own in `folder`, which go again.
  flip_cases(const trained_shard& shard, std::filesystem::path folder);

  outcome run(std::uint64_t seed);

private:
  outcome flip_on_the_way(std::uint64_t seed, place where, std::size_t copy, std::uint64_t bit);
  outcome flip_in_file(std::uint64_t seed, std::size_t copy, std::uint64_t bit);
  std::uint64_t opportunities(std::size_t copy, place where);
  persistence::shard_store_options store_options(std::shared_ptr<bit_flip> flip, std::uint64_t seed) const;
  void begin(std::size_t copy) const;
  outcome fill_and_promote(std::shared_ptr<bit_flip> flip, std::uint64_t seed, place where,
                           const std::string& what) const;
  outcome promote(std::shared_ptr<bit_flip> flip, const kept_copy& acknowledged, std::uint64_t identity,
                  outcome so_far) const;

  const trained_shard& shard_;
  std::filesystem::path folder_;
  std::map<std::size_t, bit_flip> undisturbed_; ///< by the copy that it begins with
};

} // namespace dlrun::flipped_bits
