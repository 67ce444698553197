/// Makers of the layers, one file each. `name` is the layer's, `input` the shape of a record it gets; each
/// checks its arguments and the shape, and fills in PyTorch's defaults.
#pragma once

#include "engine/layer.hpp"
#include "proto/job_spec.pb.h"

namespace dlrun::engine {

using layer_result = result<std::unique_ptr<layer>>;

/// torch.nn.Linear: [in] to [out_features].
layer_result make_linear(const spec::Linear& spec, const std::string& name, const shape& input);
/// torch.nn.Conv2d: [in_channels, height, width] to [out_channels, floor((height + 2 padding - kernel_size) /
/// stride) + 1, ...].
layer_result make_conv2d(const spec::Conv2d& spec, const std::string& name, const shape& input);
/// torch.nn.MaxPool2d: [channels, height, width], the same formula; stride is kernel_size when not written.
layer_result make_max_pool2d(const spec::MaxPool2d& spec, const std::string& name, const shape& input);
/// torch.nn.Dropout: any shape, kept. Zeroes an element with probability p in training and scales the others
/// by 1 / (1 - p).
layer_result make_dropout(const spec::Dropout& spec, const std::string& name, const shape& input);
/// torch.nn.BatchNorm1d and BatchNorm2d: [channels] or [channels, height, width], kept.
layer_result make_batch_norm(const spec::BatchNorm& spec, const std::string& name, const shape& input);
/// torch.nn.ReLU: any shape, kept.
layer_result make_relu(const std::string& name, const shape& input);
/// torch.nn.Flatten: [channels, height, width] to [channels * height * width], in that order.
layer_result make_flatten(const std::string& name, const shape& input);

/// Extent of an axis after windows of `kernel` at every `stride`-th place; below 1 when none fits.
std::int64_t windows(std::int64_t extent, std::int64_t kernel, std::int64_t stride, std::int64_t padding);

/// bad_spec: "layer '<name>' (<kind>): <what>".
tl::unexpected<error> layer_error(const std::string& name, const char* kind, const std::string& what);

/// Half-width 1/sqrt(fan_in) of PyTorch's initial weights and biases of linear and convolution layers:
/// kaiming_uniform with a = sqrt(5) (He et al. 2015, as torch.nn.Linear.reset_parameters calls it).
float initial_bound(std::int64_t fan_in);

} // namespace dlrun::engine
