/// What layers that convolve have in common.
#pragma once

#include "engine/layer.hpp"
#include "kernels/cpu/convolution.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dlrun::engine {

/// A convolution, of an image or flat; its tensors are weight and, where the geometry has one,
/// bias.
std::unique_ptr<layer> make_convolution_layer(std::string name, const shape& input,
                                              const kernels::cpu::convolution_geometry& geometry);

/// Weight, and bias where `biases` is not 0, of a convolution. Initialised as
/// PyTorch does: uniform, within a bound that the weight's second axis and the kernel give.
std::vector<layer_tensor> kernel_tensors(const kernels::cpu::convolution_geometry& geometry,
                                         std::int64_t biases);

/// What is wrong with out_channels, kernel_size, stride or padding themselves, or "".
std::string convolution_complaint(const kernels::cpu::convolution_geometry& geometry);

} // namespace dlrun::engine
