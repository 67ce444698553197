/// Memory of a device for the operations of one network.
#pragma once

#include "engine/activations.hpp"
#include "kernels/cuda/device_api.hpp"

#include <cstddef>
#include <cstdint>
#include <dlrun/error.hpp>

namespace dlrun::engine {

/// Whose memory an array is in.
enum class array_place : std::uint8_t {
  device,
  host ///< where the device copies from and to without a detour
};

/// Values in memory that grows, and keeps nothing when it does. The device outlives it.
template <class Value, array_place Place>
class grown_array {
public:
  explicit grown_array(kernels::cuda::device& on)
      : on_{on} {}
  ~grown_array() { release(); }
  grown_array(const grown_array&) = delete;
  grown_array& operator=(const grown_array&) = delete;

  /// Room for `count` values, of any content where there was less. Waits for both lanes then.
  /// @returns limit_exceeded when there is no memory, system when the device failed.
  result<void> resize(std::size_t count) {
    if (data_ != nullptr && count <= capacity_) return {};
    using kernels::cuda::lane;
    for (const auto one : {lane::compute, lane::side})
      if (auto done = on_.finish(one); !done) return done;
    release(); // before there is more
    const auto bytes = count * sizeof(Value);
    auto memory = Place == array_place::device ? on_.allocate(bytes) : on_.allocate_host(bytes);
    if (!memory) return tl::unexpected(memory.error());
    data_ = static_cast<Value*>(*memory);
    capacity_ = count;
    return {};
  }
  Value* data() const { return data_; }
  std::size_t bytes() const { return data_ == nullptr ? 0 : capacity_ * sizeof(Value); }

private:
  void release() {
    if (data_ == nullptr) return;
    if constexpr (Place == array_place::device)
      on_.release(data_);
    else
      on_.release_host(data_);
    data_ = nullptr;
  }

  kernels::cuda::device& on_;
  Value* data_ = nullptr;
  std::size_t capacity_ = 0;
};

template <class Value>
using device_array = grown_array<Value, array_place::device>;
template <class Value>
using pinned_array = grown_array<Value, array_place::host>;

/// Activations of a device in memory that grows, as device_array.
class activation_array {
public:
  explicit activation_array(kernels::cuda::device& on)
      : number_bytes_{kernels::cuda::activation_bytes(on.arithmetic())}
      , bytes_{on} {}

  result<void> resize(std::size_t count) { return bytes_.resize(count * number_bytes_); }
  void* data() const { return bytes_.data(); }
  std::size_t bytes() const { return bytes_.bytes(); }
  /// The first `count`, for which there is room.
  activations first(std::size_t count) const { return {bytes_.data(), count, number_bytes_}; }

private:
  std::size_t number_bytes_;
  device_array<std::byte> bytes_;
};

/// Whether activations of the device are less than floats.
inline bool stores_less(const kernels::cuda::device& on) {
  return kernels::cuda::activation_bytes(on.arithmetic()) < sizeof(float);
}

} // namespace dlrun::engine
