/// Memory for activations, and for operands that kernels reorder.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <span>

namespace dlrun::kernels::cpu {

/// Owns floats that begin at a cache line, so that no vector of them crosses one. It keeps its
/// memory when the size shrinks, since the next microbatch is large again.
class aligned_floats {
public:
  /// @returns the first `size` floats: of undefined content when that is more than ever before,
  /// else as they were.
  std::span<float> resize(std::int64_t size) {
    if (size > capacity_) {
      memory_.reset(); // before there is more
      memory_.reset(static_cast<float*>(
          ::operator new (static_cast<std::size_t>(size) * sizeof(float), std::align_val_t{alignment})));
      capacity_ = size;
    }
    return {memory_.get(), static_cast<std::size_t>(size)};
  }
  float* data() const { return memory_.get(); }

private:
  static constexpr std::size_t alignment = 64;
  struct release {
    void operator()(float* memory) const { ::operator delete (memory, std::align_val_t{alignment}); }
  };
  std::unique_ptr<float, release> memory_;
  std::int64_t capacity_ = 0;
};

} // namespace dlrun::kernels::cpu
