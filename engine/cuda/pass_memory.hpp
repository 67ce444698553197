/// What a pass of a model takes of a device's memory, and how many records fit.
#pragma once

#include "engine/model.hpp"
#include "kernels/cuda/precision.hpp"

#include <cstddef>
#include <cstdint>
#include <dlrun/error.hpp>
#include <memory>

namespace dlrun::engine {

/// Bytes of a device, beside parameters and vectors.
struct pass_memory {
  std::size_t activations = 0; ///< and, on the way back, their gradients
  std::size_t layers = 0;      ///< records, targets, and what layers and the loss keep for themselves

  std::size_t sum() const { return activations + layers; }
};

/// Whether a pass goes back.
enum class pass_kind : std::uint8_t { forward, forward_and_back };

/// What a pass over `records` records (from 1) allocates on a device of this precision: found by a
/// pass on a dry_device. @returns
/// bad_usage for a model of which the host computes layers, which have nothing to compute with
/// then.
result<pass_memory> memory_of_pass(const std::shared_ptr<const model>& model, std::int64_t records,
                                   pass_kind kind, kernels::cuda::precision arithmetic);

/// The largest number of records, below `below`, of which a pass takes no more than `bytes`; 0
/// where not even the least that the model takes do, or nothing is known.
std::int64_t records_that_fit(const std::shared_ptr<const model>& model, std::size_t bytes,
                              std::int64_t below, pass_kind kind, kernels::cuda::precision arithmetic);

} // namespace dlrun::engine
