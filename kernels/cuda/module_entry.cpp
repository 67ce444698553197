#include "kernels/cuda/build_id.hpp"
#include "kernels/cuda/cuda_module.hpp"

#include <string_view>

/// See kernels/cuda/device_api.hpp, device_module_entry.
extern "C" __attribute__((visibility("default"))) dlrun::kernels::cuda::device_module*
dlrun_device_module_1(const char* build) {
  static dlrun::kernels::cuda::cuda_module module;
  return build != nullptr && std::string_view(build) == dlrun::kernels::cuda::build_id ? &module : nullptr;
}
