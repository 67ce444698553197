#include "engine/cuda/device_operations.hpp"

#include <type_traits>
#include <variant>

namespace dlrun::engine {
namespace {

/// The operation of a layer, by what the layer says of itself.
struct maker {
  const operation_parts& parts;
  const layer& of;
  bool input_gradient;

  device_operation operator()(const host_description&) const {
    return make_host_operation(parts.device, of.make_operation(parts.host, input_gradient), parts.watch);
  }
  device_operation operator()(const linear_description& what) const {
    return make_device_linear(parts.device, what, false);
  }
  device_operation operator()(const convolution_description& what) const {
    return make_device_convolution(parts.device, what);
  }
  device_operation operator()(const transposed_convolution_description& what) const {
    return make_device_transposed_convolution(parts.device, what);
  }
  device_operation operator()(const max_pool_description& what) const {
    return make_device_pool(parts.device, what);
  }
  device_operation operator()(const average_pool_description& what) const {
    return make_device_pool(parts.device, what);
  }
  device_operation operator()(const relu_description&) const { return make_device_relu(parts.device); }
  device_operation operator()(const activation_description& what) const {
    return make_device_activation(parts.device, what);
  }
  device_operation operator()(const dropout_description& what) const {
    return make_device_dropout(parts, what);
  }
  device_operation operator()(const batch_norm_description& what) const {
    return make_device_batch_norm(parts.device, what, of.input_shape()[0]);
  }
  device_operation operator()(const group_norm_description& what) const {
    return make_device_group_norm(parts.device, what);
  }
  device_operation operator()(const layer_norm_description& what) const {
    return make_device_layer_norm(parts.device, what, of.input_shape());
  }
  device_operation operator()(const reshape_description&) const {
    return make_device_reshape(parts.device, of.input_shape(), of.output_shape());
  }
  device_operation operator()(const add_description&) const { return make_device_add(parts.device); }
  device_operation operator()(const multiply_description&) const {
    return make_device_multiply(parts.device);
  }
  device_operation operator()(const concat_description& what) const {
    return make_device_concat(parts.device, what);
  }
  device_operation operator()(const softmax_description&) const {
    return make_device_softmax(parts.device, of.input_shape()[0]);
  }
  device_operation operator()(const embedding_description& what) const {
    return make_device_embedding(parts, what, of);
  }
  device_operation operator()(const select_description& what) const {
    return make_device_select(parts.device, what);
  }
};

} // namespace

device_operation make_device_operation(const operation_parts& parts, const layer& layer,
                                       bool input_gradient) {
  return std::visit(maker{parts, layer, input_gradient}, layer.describe());
}

/// cuBLASLt's gelu is that of tanh, rounded in its own way, and the slope of gelu needs what linear
/// gives: so relu is the only activation that a product takes.
device_operation make_joined_device_operation(const operation_parts& parts,
                                              std::span<const layer* const> before, const layer& last) {
  const auto after = last.describe();
  if (before.size() != 1 || !std::holds_alternative<relu_description>(after)) return {};
  const auto first = before.front()->describe();
  const auto* const linear = std::get_if<linear_description>(&first);
  return linear == nullptr ? device_operation{} : make_device_linear(parts.device, *linear, true);
}

} // namespace dlrun::engine
