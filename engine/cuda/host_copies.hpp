/// Large copies between the host and a device.
#pragma once

#include "engine/cuda/device_array.hpp"
#include "kernels/cuda/device_api.hpp"

#include <array>
#include <cstddef>
#include <dlrun/error.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dlrun::engine {

/// Copies parameters to a device, and gradients from it. Memory that the device was told of is read
/// and written where it is; between other memory and the device there is a copy in memory that the
/// device reaches directly. Used by the device's thread.
class host_copies {
public:
  using access = kernels::cuda::host_access;

  /// The device outlives it.
  explicit host_copies(kernels::cuda::device& on);

  /// Tells the device of memory that is copied again and again, unless it has refused memory of
  /// this kind before: what it says once it says always. The memory stays mapped until what is
  /// returned is destroyed, which may be in any thread and after this object, but not while a copy
  /// uses the memory. @returns null when the device refuses.
  std::shared_ptr<void> announce(std::span<const std::byte> memory, access how);

  /// Puts the copy into the lane compute. `from` stays as it is until the lane has done it.
  /// @returns limit_exceeded without memory for the copy in between.
  result<void> upload(std::span<const float> from, float* to);
  /// All that is in the lane, and then the copy. @returns also system, when the device failed.
  result<void> download(kernels::cuda::lane on, const float* from, std::span<float> to);

  /// What has become of the first memory of each kind, since this was asked last.
  std::vector<std::string> take_remarks();

private:
  struct known_memory;
  class announcement;
  bool is_known(std::span<const std::byte> memory, access how) const;

  kernels::cuda::device& on_;
  std::shared_ptr<known_memory> known_;
  std::array<std::optional<result<void>>, 2> answers_; ///< of the device, by access; the first, or a refusal
  std::vector<std::string> remarks_;
  pinned_array<float> to_device_, to_host_;
};

} // namespace dlrun::engine
