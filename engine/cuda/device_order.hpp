/// Between the order of activations (channels innermost) and PyTorch's (channels first), on a
/// device.
#pragma once

#include "engine/channel_extents.hpp"
#include "kernels/cuda/device_api.hpp"

#include <cstdint>

namespace dlrun::engine {

/// The two orders of records of one shape, for a device.
struct device_order : channel_extents {
  using channel_extents::channel_extents;

  /// `to` = `from`, of `batch` records, with channels first. Disjoint.
  void to_first(kernels::cuda::device& on, std::int64_t batch, const void* from, void* to) const {
    on.run(kernels::cuda::lane::compute, kernels::cuda::transpose{batch, pixels, channels, from, to});
  }
  /// And back.
  void to_last(kernels::cuda::device& on, std::int64_t batch, const void* from, void* to) const {
    on.run(kernels::cuda::lane::compute, kernels::cuda::transpose{batch, channels, pixels, from, to});
  }
};

} // namespace dlrun::engine
