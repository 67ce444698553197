/// The steps that libraries compute on a GPU, as plain loops.
#pragma once

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/steps.hpp"

namespace dlrun::kernels::cuda {

/// Each sum is taken in double, then rounded.
void run_library(queue on, const product& what);
void run_library(queue on, const convolution& what);

} // namespace dlrun::kernels::cuda
