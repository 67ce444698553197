/// Softmax of rows.
#pragma once

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/steps.hpp"

namespace dlrun::kernels::cuda {

void run(queue on, const softmax_forward& what);
void run(queue on, const softmax_backward& what);

} // namespace dlrun::kernels::cuda
