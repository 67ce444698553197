/// Memory of a device for the operations of one network.
#pragma once

#include "kernels/cuda/device_api.hpp"

#include <cstddef>
#include <dlrun/error.hpp>

namespace dlrun::engine {

/// Values of a device. Grows, and keeps nothing when it does; the device outlives it.
template <class Value>
class device_array {
public:
  explicit device_array(kernels::cuda::device& on)
      : on_{on} {}
  ~device_array() {
    if (data_ != nullptr) on_.release(data_);
  }
  device_array(const device_array&) = delete;
  device_array& operator=(const device_array&) = delete;

  /// Room for `count` values, of any content where there was less. Waits for both lanes then.
  /// @returns limit_exceeded when there is no memory, system when the device failed.
  result<void> resize(std::size_t count) {
    if (data_ != nullptr && count <= capacity_) return {};
    using kernels::cuda::lane;
    for (const auto one : {lane::compute, lane::side})
      if (auto done = on_.finish(one); !done) return done;
    if (data_ != nullptr) on_.release(data_); // before there is more
    data_ = nullptr;
    auto memory = on_.allocate(count * sizeof(Value));
    if (!memory) return tl::unexpected(memory.error());
    data_ = static_cast<Value*>(*memory);
    capacity_ = count;
    return {};
  }
  Value* data() const { return data_; }

private:
  kernels::cuda::device& on_;
  Value* data_ = nullptr;
  std::size_t capacity_ = 0;
};

/// Values of the host where a device copies from and to without a detour. As device_array.
template <class Value>
class pinned_array {
public:
  explicit pinned_array(kernels::cuda::device& on)
      : on_{on} {}
  ~pinned_array() {
    if (data_ != nullptr) on_.release_host(data_);
  }
  pinned_array(const pinned_array&) = delete;
  pinned_array& operator=(const pinned_array&) = delete;

  /// As device_array::resize(), when no copy from or to it is in a lane.
  result<void> resize(std::size_t count) {
    if (data_ != nullptr && count <= capacity_) return {};
    if (data_ != nullptr) on_.release_host(data_);
    data_ = nullptr;
    auto memory = on_.allocate_host(count * sizeof(Value));
    if (!memory) return tl::unexpected(memory.error());
    data_ = static_cast<Value*>(*memory);
    capacity_ = count;
    return {};
  }
  Value* data() const { return data_; }

private:
  kernels::cuda::device& on_;
  Value* data_ = nullptr;
  std::size_t capacity_ = 0;
};

} // namespace dlrun::engine
