/// The key of a pass, where steps of a device read it.
#pragma once

#include "engine/cuda/device_array.hpp"
#include "kernels/cuda/device_api.hpp"

#include <dlrun/batch.hpp>
#include <dlrun/error.hpp>

namespace dlrun::engine {

/// The key of the microbatch in memory of the device: steps that draw random numbers are then the
/// same in each pass. The device outlives it.
class pass_key {
public:
  explicit pass_key(kernels::cuda::device& on)
      : on_{on}
      , there_{on}
      , told_{on} {}

  /// Brings it there, in the lane compute, unless it is there. No other pass is under way.
  /// @returns where, the same place each time; as device_array::resize().
  result<const slot_key*> bring(const slot_key& key) {
    if (there_.data() != nullptr && *told_.data() == key) return there_.data();
    if (auto room = told_.resize(1); !room) return tl::unexpected(room.error());
    if (auto room = there_.resize(1); !room) return tl::unexpected(room.error());
    *told_.data() = key;
    on_.upload(kernels::cuda::lane::compute, told_.data(), there_.data(), sizeof(key));
    return there_.data();
  }

private:
  kernels::cuda::device& on_;
  device_array<slot_key> there_;
  pinned_array<slot_key> told_; ///< what lies there
};

} // namespace dlrun::engine
