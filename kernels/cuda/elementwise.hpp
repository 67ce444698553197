/// Kernels that compute element by element.
#pragma once

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/steps.hpp"

namespace dlrun::kernels::cuda {

void run(queue on, const fill& what);
void run(queue on, const copy& what);
void run(queue on, const add& what);
void run(queue on, const multiply& what);
void run(queue on, const relu_forward& what);
void run(queue on, const relu_backward& what);
void run(queue on, const activate_forward& what);
void run(queue on, const activate_backward& what);
void run(queue on, const dropout& what);

} // namespace dlrun::kernels::cuda
