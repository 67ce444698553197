/// Sums of columns, and rows that are added: biases and their gradients.
#pragma once

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/precision.hpp"
#include "kernels/cuda/steps.hpp"

namespace dlrun::kernels::cuda {

void run(queue on, precision stored, const sum_columns& what);
void run(queue on, precision stored, const add_row& what);

} // namespace dlrun::kernels::cuda
