/// Softmax of rows.
#pragma once

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/precision.hpp"
#include "kernels/cuda/steps.hpp"

namespace dlrun::kernels::cuda {

void run(queue on, precision stored, const softmax_forward& what);
void run(queue on, precision stored, const softmax_backward& what);

} // namespace dlrun::kernels::cuda
