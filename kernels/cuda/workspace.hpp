/// Memory that libraries compute in.
#pragma once

#include <cstddef>
#include <cuda_runtime_api.h>
#include <dlrun/error.hpp>

namespace dlrun::kernels::cuda {

/// Room in the memory of a device for what is in one stream, where one step follows the other. It
/// only grows, to what the largest step needs; what it has then is lost.
class workspace {
public:
  workspace() = default;
  ~workspace();
  workspace(const workspace&) = delete;
  workspace& operator=(const workspace&) = delete;

  /// At least `bytes`, aligned to 256; null for 0. Of the device that is current when it grows, for
  /// which it waits until the stream is empty. @returns limit_exceeded when there is no more.
  result<void*> room(cudaStream_t of, std::size_t bytes);
  /// What room() gives for as much as it was asked for last, or less.
  const void* memory() const { return memory_; }
  /// The most that it was asked for.
  std::size_t wanted() const { return wanted_; }

private:
  void* memory_ = nullptr;
  std::size_t size_ = 0, wanted_ = 0;
};

} // namespace dlrun::kernels::cuda
