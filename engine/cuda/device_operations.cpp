#include "engine/cuda/device_operations.hpp"

#include <type_traits>
#include <variant>

namespace dlrun::engine {
namespace {

/// The operation of a layer, by what the layer says of itself.
struct maker {
  kernels::cuda::device& device;
  const layer& of;
  kernels::cpu::onednn& host;
  host_watch& watch;
  bool input_gradient;

  device_operation operator()(const host_description&) const {
    return make_host_operation(device, of.make_operation(host, input_gradient), watch);
  }
  device_operation operator()(const linear_description& what) const {
    return make_device_linear(device, what);
  }
  device_operation operator()(const convolution_description& what) const {
    return make_device_convolution(device, what);
  }
  device_operation operator()(const transposed_convolution_description& what) const {
    return make_device_transposed_convolution(device, what);
  }
  device_operation operator()(const max_pool_description& what) const {
    return make_device_pool(device, what);
  }
  device_operation operator()(const average_pool_description& what) const {
    return make_device_pool(device, what);
  }
  device_operation operator()(const relu_description&) const { return make_device_relu(device); }
  device_operation operator()(const activation_description& what) const {
    return make_device_activation(device, what);
  }
  device_operation operator()(const dropout_description& what) const {
    return make_device_dropout(device, what);
  }
  device_operation operator()(const batch_norm_description& what) const {
    return make_device_batch_norm(device, what, of.input_shape()[0]);
  }
  device_operation operator()(const group_norm_description& what) const {
    return make_device_group_norm(device, what);
  }
  device_operation operator()(const layer_norm_description& what) const {
    return make_device_layer_norm(device, what, of.input_shape());
  }
  device_operation operator()(const reshape_description&) const {
    return make_device_reshape(device, of.input_shape(), of.output_shape());
  }
  device_operation operator()(const add_description&) const { return make_device_add(device); }
  device_operation operator()(const multiply_description&) const { return make_device_multiply(device); }
  device_operation operator()(const concat_description& what) const {
    return make_device_concat(device, what);
  }
  device_operation operator()(const softmax_description&) const {
    return make_device_softmax(device, of.input_shape()[0]);
  }
  device_operation operator()(const embedding_description& what) const {
    return make_device_embedding(device, what, of);
  }
  device_operation operator()(const select_description& what) const {
    return make_device_select(device, what);
  }
};

} // namespace

device_operation make_device_operation(kernels::cuda::device& device, const layer& layer,
                                       kernels::cpu::onednn& host, host_watch& watch, bool input_gradient) {
  return std::visit(maker{device, layer, host, watch, input_gradient}, layer.describe());
}

} // namespace dlrun::engine
