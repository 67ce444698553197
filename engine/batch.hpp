/// What a network is given to compute on.
#pragma once

#include <cstdint>
#include <span>

namespace dlrun::engine {

/// The records of one microbatch, owned by the caller.
struct batch {
  std::span<const float> records;       ///< (size, input_shape...), images channels first
  std::span<const std::int32_t> labels; ///< (size), class numbers from 0
  std::int64_t size = 0;                ///< records, at least 1
};

/// Names a microbatch: with the layer it keys every random number that computing it takes, so that whoever
/// computes it, and however often, draws the same ones.
struct slot_key {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint32_t slot = 0;
};

} // namespace dlrun::engine
