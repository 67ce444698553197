/// Errors of CUDA as errors of dlrun.
#pragma once

#include <cuda_runtime_api.h>
#include <dlrun/error.hpp>
#include <fmt/format.h>
#include <string_view>

namespace dlrun::kernels::cuda {

/// What CUDA says of a failure, with its number.
inline std::string cuda_text(cudaError_t code) {
  return fmt::format("{} (CUDA error {})", cudaGetErrorString(code), static_cast<int>(code));
}

/// limit_exceeded where memory is what is missing, system otherwise. Takes the error out of CUDA's
/// record of the last one.
inline result<void> cuda_call(cudaError_t code, std::string_view doing) {
  if (code == cudaSuccess) return {};
  static_cast<void>(cudaGetLastError());
  const bool memory = code == cudaErrorMemoryAllocation;
  return fail(memory ? error_code::limit_exceeded : error_code::system,
              fmt::format("{}: {}", doing, cuda_text(code)));
}

} // namespace dlrun::kernels::cuda
