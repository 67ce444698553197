/// Activations as a backend keeps them.
#pragma once

#include <cstddef>
#include <dlrun/check.hpp>
#include <span>

namespace dlrun::engine {

/// Numbers in the memory of a backend: where they begin, which only the backend reads, and how many
/// there are. Like an address it does not say who may write there: the calls that it is given to
/// do. Cheap to copy; the memory is the backend's.
class activations {
public:
  /// None.
  activations() = default;
  /// `size` numbers of `number_bytes` each.
  activations(void* data, std::size_t size, std::size_t number_bytes)
      : data_{static_cast<std::byte*>(data)}
      , size_{size}
      , number_bytes_{number_bytes} {}
  explicit activations(std::span<const float> floats)
      : activations(const_cast<float*>(floats.data()), floats.size(), sizeof(float)) {}

  void* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::size_t number_bytes() const { return number_bytes_; }

  /// `count` of them, from number `first` on.
  activations part(std::size_t first, std::size_t count) const {
    return {data_ + first * number_bytes_, count, number_bytes_};
  }
  /// As floats, which they are and the caller can reach, or none.
  std::span<float> floats() const {
    DLRUN_CHECK(empty() || number_bytes_ == sizeof(float), "activations of {} bytes are no floats",
                number_bytes_);
    return {reinterpret_cast<float*>(data_), size_};
  }

private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t number_bytes_ = 0;
};

} // namespace dlrun::engine
