/// The steps that libraries compute on a GPU, as plain loops.
#pragma once

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/device_api.hpp"
#include "kernels/cuda/steps.hpp"

namespace dlrun::kernels::cuda {

/// `value` with 10 bits of mantissa, to nearest, and to even where two are as near. NVIDIA does not
/// say how its libraries round to TF32, only to how many bits: GPUs may give other bits, as they do
/// for the order of sums.
float rounded_to_tf32(float value);

/// Each sum is taken in double, then rounded to what is written. With tf32 the factors are rounded
/// first.
void run_library(queue on, const product& what, precision arithmetic);
void run_library(queue on, const convolution& what, precision arithmetic);

} // namespace dlrun::kernels::cuda
