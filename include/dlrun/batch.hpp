/// What a model is given to compute on.
#pragma once

#include <cstdint>
#include <span>

namespace dlrun {

/// What a loss compares the outputs of a record with.
enum class target_kind : std::uint8_t {
  classes, ///< the number of its class
  values,  ///< one number or more
};

/// The records of one microbatch and their targets, owned by the caller. Which of `classes` and
/// `values` is filled follows from the loss; the other one is empty. To predict both are.
struct batch {
  std::span<const float> records;        ///< (size, input_shape...), images channels first
  std::span<const std::int32_t> classes; ///< (size), class numbers from 0
  std::span<const float> values;         ///< (size, values of a target)
  std::int64_t size = 0;                 ///< records, at least 1
};

/// Names a microbatch: with the layer it keys every random number that computing it takes, so that
/// whoever computes it, and however often, draws the same ones.
struct slot_key {
  std::uint64_t seed = 0; ///< train.seed
  std::uint64_t step = 0; ///< of the job, from 0
  std::uint32_t slot = 0; ///< of the step, from 0
};

} // namespace dlrun
