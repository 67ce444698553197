/// What conv1d and conv2d have in common.
#pragma once

#include "kernels/cpu/convolution.hpp"
#include <dlrun/operation.hpp>

#include <memory>
#include <string>

namespace dlrun::engine {

/// A convolution at work; its tensors are weight and, where the geometry has one, bias. `context`
/// must outlive it.
std::unique_ptr<operation> make_convolution_operation(kernels::cpu::onednn& context,
                                                      const kernels::cpu::convolution_geometry& geometry,
                                                      bool input_gradient);

/// What is wrong with out_channels, kernel_size, stride or padding themselves, or "".
std::string convolution_complaint(const kernels::cpu::convolution_geometry& geometry);

} // namespace dlrun::engine
