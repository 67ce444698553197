/// Kernels that move floats and change none.
#pragma once

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/steps.hpp"

namespace dlrun::kernels::cuda {

void run(queue on, const transpose& what);
void run(queue on, const read_columns& what);
void run(queue on, const write_columns& what);

} // namespace dlrun::kernels::cuda
