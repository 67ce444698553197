/// Kernels over the windows of images, channels innermost.
#pragma once

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/precision.hpp"
#include "kernels/cuda/steps.hpp"

namespace dlrun::kernels::cuda {

void run(queue on, precision stored, const max_pool_forward& what);
void run(queue on, precision stored, const max_pool_backward& what);
void run(queue on, precision stored, const average_pool_forward& what);
void run(queue on, precision stored, const average_pool_backward& what);

} // namespace dlrun::kernels::cuda
