/// What is told of a device that has too little memory.
#pragma once

#include "engine/cuda/pass_memory.hpp"

#include <cstddef>
#include <cstdint>
#include <dlrun/error.hpp>
#include <memory>

namespace dlrun::engine {

/// A device: the bytes of it that are taken beside those of a pass, and that were there.
struct memory_account {
  std::size_t vectors = 0;   ///< parameters, gradients and sums of gradients
  std::size_t libraries = 0; ///< what steps want to compute in
  std::size_t free = 0;      ///< before the first of all this
  kernels::cuda::precision arithmetic = kernels::cuda::precision::fp32; ///< of the device
};

/// `why`, an error of memory in a pass over `records` records, with what it takes of which, and how
/// many records would fit. Counts to the byte what is allocated here; libraries may yet want more.
error explain_pass(const error& why, const memory_account& account, const std::shared_ptr<const model>& model,
                   std::int64_t records, pass_kind kind);

/// `why`, an error of memory for a vector, with what they take together.
error explain_vectors(const error& why, const memory_account& account);

} // namespace dlrun::engine
