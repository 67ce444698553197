/// Kernels over rows of tables.
#pragma once

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/precision.hpp"
#include "kernels/cuda/steps.hpp"

namespace dlrun::kernels::cuda {

void run(queue on, const read_indices& what);
void run(queue on, precision stored, const embedding_forward& what);
void run(queue on, precision stored, const embedding_backward& what);

} // namespace dlrun::kernels::cuda
