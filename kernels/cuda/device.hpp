/// What kernels are written in: all that a .cu file includes beside the steps that it computes.
///
/// The same source is compiled twice: by nvcc for GPUs, and by the host's compiler against
/// stand_in/cuda_on_cpu.hpp, where every thread of a block is a fiber. So a kernel uses only what
/// both have: threadIdx, blockIdx, blockDim and gridDim (.x), __shared__ arrays of fixed size,
/// __syncthreads(), __launch_bounds__(), atomicMin on integers. No float is added atomically: the
/// order of a sum would be another each time.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#include <cuda_runtime.h>

namespace dlrun::kernels::cuda {

/// Where kernels are put.
using queue = cudaStream_t;

/// Puts `kernel` over `blocks` blocks of `threads` threads into the queue. Nothing where `blocks`
/// is 0. What goes wrong is kept by CUDA: cudaGetLastError().
template <class... Parameters, class... Arguments>
void launch(queue on, void (*kernel)(Parameters...), std::int64_t blocks, int threads,
            const Arguments&... arguments) {
  if (blocks == 0) return;
  kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), 0, on>>>(
      static_cast<Parameters>(arguments)...);
}

} // namespace dlrun::kernels::cuda
#else
#include "kernels/cuda/stand_in/cuda_on_cpu.hpp"
#endif

namespace dlrun::kernels::cuda {

/// Threads of a block, where nothing else is said.
constexpr int block_threads = 256;
/// More blocks than this are no faster: a thread then takes several elements. With threads of the
/// host a block costs so much that tests have few, and what a block does twice is done all the
/// same.
#ifdef DLRUN_STAND_IN_THREADS
constexpr std::int64_t blocks_max = 4;
#else
constexpr std::int64_t blocks_max = 132 * 16;
#endif

/// Blocks for `count` elements, of which each thread takes those at its number and every
/// blocks * block_threads further.
constexpr std::int64_t blocks_for(std::int64_t count) {
  const std::int64_t wanted = (count + block_threads - 1) / block_threads;
  return wanted < blocks_max ? wanted : blocks_max;
}

/// The number of this thread among all, and how many those are.
inline __device__ std::int64_t thread_number() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
inline __device__ std::int64_t thread_count() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }

} // namespace dlrun::kernels::cuda
