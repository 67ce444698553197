/// Losses and their gradients by the outputs.
#pragma once

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/steps.hpp"

namespace dlrun::kernels::cuda {

void run(queue on, const cross_entropy& what);
void run(queue on, const distance& what);

} // namespace dlrun::kernels::cuda
