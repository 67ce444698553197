/// Layers at work on a device: operations whose activations are memory of the device.
#pragma once

#include "engine/backend.hpp"
#include "engine/cuda/device_array.hpp"
#include "engine/cuda/host_watch.hpp"
#include "engine/cuda/pass_key.hpp"
#include "engine/layer.hpp"
#include "engine/model.hpp"
#include "kernels/cuda/device_api.hpp"

#include <cstdint>
#include <dlrun/error.hpp>
#include <memory>
#include <span>

namespace dlrun::engine {

/// Looks, when a pass has come so far, at values that an operation of the device could not refuse
/// by itself.
class value_check {
public:
  virtual ~value_check() = default;
  value_check() = default;
  value_check(const value_check&) = delete;
  value_check& operator=(const value_check&) = delete;

  /// The device has done all that forward() asked for. @returns bad_data as the operation of the
  /// processor would; system when the device failed.
  virtual result<void> check() = 0;
};

/// An operation, and what has to be looked at after each of its forward() (part of it, or null).
struct device_operation {
  std::unique_ptr<backend_operation> compute;
  value_check* values = nullptr;
  bool on_host = false; ///< it computes on the processor, between two copies
};

/// What operations are made of. All outlives them.
struct operation_parts {
  kernels::cuda::device& device;
  kernels::cpu::onednn& host;         ///< for layers that the device does not know
  host_watch& watch;                  ///< of these
  const model& of;                    ///< whose layers they compute
  pass_key& key;                      ///< of the pass
  const device_array<float>& records; ///< of the pass, on the device, in the order of the host
};

/// The operation that computes `layer`, which outlives it. Of a layer that the device does not
/// know, the one of the processor.
device_operation make_device_operation(const operation_parts& parts, const layer& layer, bool input_gradient);

/// An operation that computes `before`, of which each is read by the next alone, and `last`, where
/// the device has a step for all of them: linear and relu. Without `compute` where it has none.
device_operation make_joined_device_operation(const operation_parts& parts,
                                              std::span<const layer* const> before, const layer& last);

/// How many numbers a step is about.
inline std::int64_t number_count(activations numbers) { return static_cast<std::int64_t>(numbers.size()); }

// ---- the parts of that, one file each

device_operation make_device_linear(kernels::cuda::device& device, const linear_description& what, bool relu);
device_operation make_device_convolution(kernels::cuda::device& device, const convolution_description& what);
device_operation make_device_transposed_convolution(kernels::cuda::device& device,
                                                    const transposed_convolution_description& what);
device_operation make_device_pool(kernels::cuda::device& device, const max_pool_description& what);
device_operation make_device_pool(kernels::cuda::device& device, const average_pool_description& what);
device_operation make_device_relu(kernels::cuda::device& device);
device_operation make_device_activation(kernels::cuda::device& device, const activation_description& what);
device_operation make_device_dropout(const operation_parts& parts, const dropout_description& what);
device_operation make_device_batch_norm(kernels::cuda::device& device, const batch_norm_description& what,
                                        std::int64_t channels);
device_operation make_device_group_norm(kernels::cuda::device& device, const group_norm_description& what);
device_operation make_device_layer_norm(kernels::cuda::device& device, const layer_norm_description& what,
                                        const shape& record);
device_operation make_device_reshape(kernels::cuda::device& device, const shape& input, const shape& output);
device_operation make_device_add(kernels::cuda::device& device);
device_operation make_device_multiply(kernels::cuda::device& device);
device_operation make_device_concat(kernels::cuda::device& device, const concat_description& what);
device_operation make_device_select(kernels::cuda::device& device, const select_description& what);
device_operation make_device_softmax(kernels::cuda::device& device, std::int64_t channels);
device_operation make_device_embedding(const operation_parts& parts, const embedding_description& what,
                                       const layer& layer);
device_operation make_host_operation(kernels::cuda::device& device, std::unique_ptr<operation> inner,
                                     host_watch& watch);

} // namespace dlrun::engine
