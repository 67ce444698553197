/// How pointers are aligned, as far as libraries are told.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace dlrun::kernels::cuda {

/// 16 where all are aligned to 16 bytes, 4 otherwise. Libraries choose kernels by it and so must
/// not see more of an address: the bits would depend on where memory happens to lie.
inline std::uint32_t common_alignment(std::initializer_list<const void*> pointers) {
  for (const void* const one : pointers)
    if (reinterpret_cast<std::uintptr_t>(one) % 16 != 0) return 4;
  return 16;
}

} // namespace dlrun::kernels::cuda
