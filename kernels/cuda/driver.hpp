/// The driver's part of CUDA. A host without an NVIDIA driver does not have it.
#pragma once

#include <dlrun/error.hpp>

namespace dlrun::kernels::cuda {

/// As the dynamic linker finds it, and CUDA's runtime asks for it.
inline constexpr const char* driver_library = "libcuda.so.1";

/// What is said of a host that has none.
inline error no_driver() {
  return {error_code::bad_usage,
          "this host has no NVIDIA driver: libcuda.so.1 is not there. Install one (Debian: nvidia-driver), "
          "or let the container see the host's (docker run --gpus all)"};
}

} // namespace dlrun::kernels::cuda
