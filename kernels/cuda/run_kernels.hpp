/// From a step to its kernels on a GPU, for code that nvcc does not compile.
#pragma once

#include "kernels/cuda/precision.hpp"
#include "kernels/cuda/steps.hpp"

#include <cuda_runtime_api.h>

namespace dlrun::kernels::cuda {

/// Puts the kernels of `what` into the stream of a device with this precision. Nothing for product
/// and convolution, which belong to libraries. What goes wrong is kept by CUDA: cudaGetLastError().
void run_kernels(cudaStream_t on, precision stored, const step& what);

} // namespace dlrun::kernels::cuda
