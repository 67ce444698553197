/// Between the order of activations (channels innermost) and PyTorch's (channels first), on a
/// device.
#pragma once

#include "kernels/cuda/device_api.hpp"
#include <dlrun/shape.hpp>

#include <cstdint>

namespace dlrun::engine {

/// Channels and pixels of records of one shape.
struct channel_extents {
  explicit channel_extents(const shape& record)
      : channels{record[0]}
      , pixels{*element_count(record) / record[0]} {}

  /// Whether both orders are one.
  bool same() const { return channels == 1 || pixels == 1; }

  /// `to` = `from`, of `batch` records, with channels first. Disjoint.
  void to_first(kernels::cuda::device& on, std::int64_t batch, const float* from, float* to) const {
    on.run(kernels::cuda::lane::compute, kernels::cuda::transpose{batch, pixels, channels, from, to});
  }
  /// And back.
  void to_last(kernels::cuda::device& on, std::int64_t batch, const float* from, float* to) const {
    on.run(kernels::cuda::lane::compute, kernels::cuda::transpose{batch, channels, pixels, from, to});
  }

  std::int64_t channels, pixels;
};

} // namespace dlrun::engine
