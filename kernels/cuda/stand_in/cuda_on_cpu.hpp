/// What a .cu file needs to be compiled by the host's compiler, as C++ (-x c++): the words of CUDA
/// that kernels of dlrun use, and launch(). Functions of CUDA's mathematics are those of <cmath>.
///
/// Shared memory is one array for each host thread, so blocks see what the block before left there:
/// like a GPU, where it has no certain content either.
#pragma once

#include "kernels/cuda/stand_in/grid.hpp"
#include "kernels/cuda/stand_in/lane.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>

// NOLINTBEGIN(readability-identifier-naming, bugprone-reserved-identifier): CUDA's names
#define __global__
#define __device__
#define __host__
#ifdef DLRUN_STAND_IN_THREADS
#define __shared__ static // threads of the host share it; one block runs at a time
#else
#define __shared__ static thread_local
#endif
#define __launch_bounds__(...)

namespace dlrun::kernels::cuda {

/// A place in a grid or a block, or the size of one. One dimension is all that kernels use.
struct dimension {
  unsigned x = 0;
};

} // namespace dlrun::kernels::cuda

// Not of a namespace, as in CUDA.
inline constinit thread_local dlrun::kernels::cuda::dimension threadIdx, blockIdx, blockDim, gridDim;

inline void __syncthreads() { dlrun::kernels::cuda::wait_for_block(); }

/// *at = the smaller of *at and value. @returns what was there. As CUDA's it is used through
/// pointers to its own kinds of integers, whatever the memory holds.
template <class Integer>
Integer atomicMin(Integer* at, Integer value) {
  Integer before;
  std::memcpy(&before, at, sizeof(before));
  if (value < before) std::memcpy(at, &value, sizeof(value));
  return before;
}
// NOLINTEND(readability-identifier-naming, bugprone-reserved-identifier)

namespace dlrun::kernels::cuda {

/// Where kernels are put.
using queue = stand_in_lane*;

/// Puts `kernel` over `blocks` blocks of `threads` threads into the queue. Nothing where `blocks`
/// is 0.
template <class... Parameters, class... Arguments>
void launch(queue on, void (*kernel)(Parameters...), std::int64_t blocks, int threads,
            const Arguments&... arguments) {
  if (blocks == 0) return;
  on->put([=] {
    run_grid(on->next_schedule(), blocks, threads, [&] { kernel(static_cast<Parameters>(arguments)...); });
  });
}

} // namespace dlrun::kernels::cuda
