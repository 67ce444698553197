/// Memory for activations: grows, is aligned, keeps nothing across a resize.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>

namespace dlrun::engine {

/// Owns floats at a 64-byte boundary. Memory is kept when the size shrinks, since the next
/// microbatch is large again.
class activation_buffer {
public:
  /// `size` floats of undefined content.
  std::span<float> resize(std::size_t size) {
    if (size > capacity_) {
      data_.reset(); // before there is more
      data_.reset(static_cast<float*>(::operator new(size * sizeof(float), alignment)));
      capacity_ = size;
    }
    return {data_.get(), size};
  }

private:
  static constexpr std::align_val_t alignment{64};
  struct release {
    void operator()(float* data) const { ::operator delete(data, alignment); }
  };
  std::unique_ptr<float, release> data_;
  std::size_t capacity_ = 0;
};

} // namespace dlrun::engine
