/// Makers of the layers, one file each. `name` is the layer's, `input` the shape of a record it
/// gets; each checks its arguments and the shape, and fills in PyTorch's defaults.
#pragma once

#include "engine/layer.hpp"
#include "proto/job_spec.pb.h"

namespace dlrun::engine {

using layer_result = result<std::unique_ptr<layer>>;

/// torch.nn.Linear: [in] to [out_features].
layer_result make_linear(const spec::Linear& spec, const std::string& name, const shape& input);
/// torch.nn.Conv2d: [in_channels, height, width] to [out_channels, floor((height + 2 padding -
/// kernel_size) / stride) + 1, ...].
layer_result make_conv2d(const spec::Conv2d& spec, const std::string& name, const shape& input);
/// torch.nn.MaxPool2d: [channels, height, width], the same formula; stride is kernel_size when not
/// written.
layer_result make_max_pool2d(const spec::MaxPool2d& spec, const std::string& name, const shape& input);
/// torch.nn.Dropout: any shape, kept. Zeroes an element with probability p in training and scales
/// the others by 1 / (1 - p).
layer_result make_dropout(const spec::Dropout& spec, const std::string& name, const shape& input);
/// torch.nn.BatchNorm1d and BatchNorm2d: [channels], [channels, length] or [channels, height,
/// width], kept.
layer_result make_batch_norm(const spec::BatchNorm& spec, const std::string& name, const shape& input);
/// torch.nn.ReLU: any shape, kept.
layer_result make_relu(const std::string& name, const shape& input);
/// torch.nn.Flatten: any shape, e.g. [channels, height, width] to [channels * height * width], in
/// that order.
layer_result make_flatten(const std::string& name, const shape& input);

/// torch.nn.AvgPool2d: as MaxPool2d.
layer_result make_avg_pool2d(const spec::AvgPool2d& spec, const std::string& name, const shape& input);
/// torch.nn.AdaptiveAvgPool2d: [channels, height, width] to [channels, output_size, output_size].
layer_result make_adaptive_avg_pool2d(const spec::AdaptiveAvgPool2d& spec, const std::string& name,
                                      const shape& input);
/// torch.nn.Conv1d: [in_channels, length] to [out_channels, that formula of length].
layer_result make_conv1d(const spec::Conv1d& spec, const std::string& name, const shape& input);
/// torch.nn.ConvTranspose2d: [in_channels, height, width] to [out_channels, (height - 1) stride - 2
/// padding + kernel_size + output_padding, ...].
layer_result make_conv_transpose2d(const spec::ConvTranspose2d& spec, const std::string& name,
                                   const shape& input);
/// torch.reshape of each record: any shape to `shape`, of as many values.
layer_result make_reshape(const spec::Reshape& spec, const std::string& name, const shape& input);
/// torch.nn.GELU, SiLU, Sigmoid, Tanh, LeakyReLU: any shape, kept.
layer_result make_gelu(const spec::Gelu& spec, const std::string& name, const shape& input);
layer_result make_silu(const std::string& name, const shape& input);
layer_result make_sigmoid(const std::string& name, const shape& input);
layer_result make_tanh(const std::string& name, const shape& input);
layer_result make_leaky_relu(const spec::LeakyRelu& spec, const std::string& name, const shape& input);
/// torch.nn.LayerNorm: any shape, kept; normalised over its last dimensions, or over all.
layer_result make_layer_norm(const spec::LayerNorm& spec, const std::string& name, const shape& input);
/// torch.nn.GroupNorm: [channels, ...], kept.
layer_result make_group_norm(const spec::GroupNorm& spec, const std::string& name, const shape& input);
/// Sum and product of inputs of one shape, kept; taken from the first input to the last.
layer_result make_add(const std::string& name, const std::vector<shape>& inputs);
layer_result make_multiply(const std::string& name, const std::vector<shape>& inputs);
/// torch.cat along the first dimension of the record: inputs agree in the others.
layer_result make_concat(const std::string& name, const std::vector<shape>& inputs);
/// torch.nn.Softmax over the first dimension of the record: any shape, kept.
layer_result make_softmax(const std::string& name, const shape& input);
/// torch.nn.Embedding: [features], each the number of a row, to [features, embedding_dim].
layer_result make_embedding(const spec::Embedding& spec, const std::string& name, const shape& input);
/// Places first..first + count - 1 of the first dimension of the record: [features] to [count].
layer_result make_select(const spec::Select& spec, const std::string& name, const shape& input);
/// A layer that the program registered (dlrun/layer.hpp).
layer_result make_custom(const spec::Custom& spec, const std::string& name, const std::vector<shape>& inputs);

/// Extent of an axis after windows of `kernel` at every `stride`-th place; below 1 when none fits.
std::int64_t windows(std::int64_t extent, std::int64_t kernel, std::int64_t stride, std::int64_t padding);

/// bad_spec: "layer '<name>' (<kind>): <what>".
tl::unexpected<error> layer_error(const std::string& name, const char* kind, const std::string& what);
/// The layer_error of a layer that takes images alone.
tl::unexpected<error> image_error(const std::string& name, const char* kind, const shape& input);

/// Half-width 1/sqrt(fan_in) of PyTorch's initial weights and biases of linear and convolution
/// layers: kaiming_uniform with a = sqrt(5) (He et al. 2015, as torch.nn.Linear.reset_parameters
/// calls it).
float initial_bound(std::int64_t fan_in);

} // namespace dlrun::engine
