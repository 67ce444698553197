/// What layers that convolve have in common.
#pragma once

#include "engine/layer.hpp"
#include "kernels/cpu/convolution.hpp"

#include <cstdint>
#include <dlrun/operation.hpp>
#include <memory>
#include <string>
#include <vector>

namespace dlrun::engine {

/// A convolution at work; its tensors are weight and, where the geometry has one, bias. `context`
/// must outlive it.
std::unique_ptr<operation> make_convolution_operation(kernels::cpu::onednn& context,
                                                      const kernels::cpu::convolution_geometry& geometry,
                                                      bool input_gradient);

/// Weight, and bias where `biases` is not 0, of a convolution. Initialised as
/// PyTorch does: uniform, within a bound that the weight's second axis and the kernel give.
std::vector<layer_tensor> kernel_tensors(const kernels::cpu::convolution_geometry& geometry,
                                         std::int64_t biases);

/// What is wrong with out_channels, kernel_size, stride or padding themselves, or "".
std::string convolution_complaint(const kernels::cpu::convolution_geometry& geometry);

} // namespace dlrun::engine
