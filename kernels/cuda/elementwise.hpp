/// Kernels that compute element by element.
#pragma once

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/precision.hpp"
#include "kernels/cuda/steps.hpp"

namespace dlrun::kernels::cuda {

void run(queue on, const fill& what);
void run(queue on, const copy& what);
void run(queue on, const add_floats& what);
void run(queue on, precision stored, const clear_activations& what);
void run(queue on, precision stored, const copy_activations& what);
void run(queue on, precision stored, const narrow& what);
void run(queue on, precision stored, const widen& what);
void run(queue on, precision stored, const add& what);
void run(queue on, precision stored, const multiply& what);
void run(queue on, precision stored, const relu_forward& what);
void run(queue on, precision stored, const relu_backward& what);
void run(queue on, precision stored, const activate_forward& what);
void run(queue on, precision stored, const activate_backward& what);
void run(queue on, precision stored, const dropout& what);

} // namespace dlrun::kernels::cuda
