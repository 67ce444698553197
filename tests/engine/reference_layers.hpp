/// Forward passes of single layers in float64, channels first, written for plainness.
#pragma once

#include "proto/job_spec.pb.h"
#include <dlrun/shape.hpp>

#include <vector>

namespace dlrun::engine::testing {

/// What a layer reads: records of one shape, channels first.
struct reference_input {
  shape extents;
  const std::vector<double>* values;
};

/// Output of a layer that reference_network.cpp does not compute itself; `w` is the layer's first
/// tensor in the flat layout (tensors begin at multiples of 16).
std::vector<double> reference_forward(const spec::LayerSpec& layer, const double* w, std::size_t batch,
                                      const std::vector<reference_input>& inputs, const shape& out);

} // namespace dlrun::engine::testing
