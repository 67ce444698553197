/// Memory for activations: grows, is aligned, keeps nothing across a resize.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace dlrun::engine {

/// Owns floats at a 64-byte boundary. Memory is kept when the size shrinks, since the next microbatch is
/// large again.
class activation_buffer {
public:
  activation_buffer() = default;
  /// What was moved from is empty and can be used again.
  activation_buffer(activation_buffer&& other) noexcept
      : data_(std::move(other.data_))
      , size_(std::exchange(other.size_, 0))
      , capacity_(std::exchange(other.capacity_, 0)) {}
  activation_buffer& operator=(activation_buffer&& other) noexcept {
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, 0);
    return *this;
  }

  /// `size` floats of undefined content.
  std::span<float> resize(std::size_t size) {
    if (size > capacity_) {
      data_.reset(static_cast<float*>(::operator new(size * sizeof(float), alignment)));
      capacity_ = size;
    }
    size_ = size;
    return {data_.get(), size_};
  }

  std::span<const float> view() const { return {data_.get(), size_}; }

private:
  static constexpr std::align_val_t alignment{64};
  struct release {
    void operator()(float* data) const { ::operator delete(data, alignment); }
  };
  std::unique_ptr<float, release> data_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

} // namespace dlrun::engine
