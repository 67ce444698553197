// A module of two devices that compute: kernels/cuda/stand_in, on the processor.
#include "kernels/cuda/build_id.hpp"
#include "kernels/cuda/stand_in/stand_in_device.hpp"

#include <string_view>

extern "C" dlrun::kernels::cuda::device_module* dlrun_device_module_1(const char* build) {
  static dlrun::kernels::cuda::stand_in_module module{{.devices = 2}};
  return std::string_view{build} == dlrun::kernels::cuda::build_id ? &module : nullptr;
}
