/// Kernels that move numbers, and change none but by rounding floats to what activations are.
#pragma once

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/precision.hpp"
#include "kernels/cuda/steps.hpp"

namespace dlrun::kernels::cuda {

void run(queue on, precision stored, const transpose& what);
void run(queue on, precision stored, const transpose_narrowing& what);
void run(queue on, precision stored, const transpose_widening& what);
void run(queue on, precision stored, const read_columns& what);
void run(queue on, const read_float_columns& what);
void run(queue on, precision stored, const write_columns& what);

} // namespace dlrun::kernels::cuda
