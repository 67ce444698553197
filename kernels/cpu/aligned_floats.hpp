/// Memory in which kernels reorder what they read.
#pragma once

#include <cstdint>
#include <memory>
#include <new>

namespace dlrun::kernels::cpu {

/// Floats that begin at a cache line, so that no vector of them crosses one. When a resize grows
/// the memory, the content is lost.
class aligned_floats {
public:
  void resize(std::int64_t size) {
    if (size <= size_) return;
    memory_.reset(static_cast<float*>(
        ::operator new (static_cast<std::size_t>(size) * sizeof(float), std::align_val_t{alignment})));
    size_ = size;
  }
  float* data() const { return memory_.get(); }

private:
  static constexpr std::size_t alignment = 64;
  struct release {
    void operator()(float* memory) const { ::operator delete (memory, std::align_val_t{alignment}); }
  };
  std::unique_ptr<float, release> memory_;
  std::int64_t size_ = 0;
};

} // namespace dlrun::kernels::cpu
