/// Normalisation by the statistics of a batch, and of groups of a record's channels.
#pragma once

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/precision.hpp"
#include "kernels/cuda/steps.hpp"

namespace dlrun::kernels::cuda {

void run(queue on, precision stored, const batch_statistics& what);
void run(queue on, const inverse_deviation& what);
void run(queue on, precision stored, const normalise& what);
void run(queue on, precision stored, const batch_norm_backward& what);
void run(queue on, precision stored, const group_norm_forward& what);
void run(queue on, precision stored, const group_norm_backward& what);

} // namespace dlrun::kernels::cuda
