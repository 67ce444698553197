/// What a model is given to compute on.
#pragma once

#include <cstdint>
#include <span>

namespace dlrun {

/// Kind of the targets with which a loss compares the outputs.
enum class target_kind : std::uint8_t {
  classes, ///< a record's target is the number of its class
  values,  ///< a record's target is one number or more
};

/// The records of one microbatch and their targets. The caller owns the memory. The loss decides
/// whether `classes` or `values` is filled; the other is empty, and for a prediction both are.
struct batch {
  std::span<const float> records;        ///< (size, input_shape...), images channels first
  std::span<const std::int32_t> classes; ///< (size), class numbers from 0
  std::span<const float> values;         ///< (size, values of a target)
  std::int64_t size = 0;                 ///< records, at least 1
};

/// Names a microbatch. Together with a layer it is the key of all random numbers of a computation:
/// any worker that computes the microbatch, however often, draws the same ones.
struct slot_key {
  std::uint64_t seed = 0; ///< train.seed
  std::uint64_t step = 0; ///< of the job, from 0
  std::uint32_t slot = 0; ///< of the step, from 0

  bool operator==(const slot_key&) const = default; ///< the same microbatch
};

} // namespace dlrun
