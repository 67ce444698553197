#include "kernels/cuda/cuda_module.hpp"

#include "kernels/cuda/cuda_call.hpp"
#include "kernels/cuda/cuda_device.hpp"
#include "kernels/cuda/driver.hpp"

#include <cublasLt.h>
#include <cudnn.h>

namespace dlrun::kernels::cuda {
namespace {

std::string cuda_version(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

std::string libraries() {
  int runtime = 0;
  static_cast<void>(cudaRuntimeGetVersion(&runtime));
  const auto dnn = cudnnGetVersion();
  const auto lt = cublasLtGetVersion();
  return fmt::format("CUDA {}, cuDNN {}.{}.{}, cuBLASLt {}.{}.{}", cuda_version(runtime), dnn / 10000,
                     dnn / 100 % 100, dnn % 100, lt / 10000, lt / 100 % 100, lt % 100);
}

error no_devices_now(cudaError_t problem) {
  static_cast<void>(cudaGetLastError());
  int driver = 0, runtime = 0;
  static_cast<void>(cudaDriverGetVersion(&driver));
  static_cast<void>(cudaRuntimeGetVersion(&runtime));
  return no_devices(problem, cudaGetErrorString(problem), driver, runtime);
}

device_properties properties_of(const cudaDeviceProp& found) {
  return {.name = found.name,
          .compute_capability = found.major * 10 + found.minor,
          .multiprocessors = found.multiProcessorCount,
          .memory_bytes = found.totalGlobalMem,
          .libraries = libraries()};
}

result<int> count_devices() {
  int count = 0;
  if (const auto status = cudaGetDeviceCount(&count); status != cudaSuccess)
    return tl::unexpected(no_devices_now(status));
  return count;
}

result<device_properties> look_at(int number) {
  cudaDeviceProp found{};
  if (const auto status = cudaGetDeviceProperties(&found, number); status != cudaSuccess)
    return tl::unexpected(no_devices_now(status));
  return properties_of(found);
}

} // namespace

error no_devices(int problem, std::string_view text, int driver, int runtime) {
  constexpr auto usage = error_code::bad_usage;
  if (driver == 0) return no_driver();
  if (problem == cudaErrorInsufficientDriver)
    return {
        usage,
        fmt::format("this host's NVIDIA driver is made for CUDA {}, and dlrun's CUDA module needs CUDA {}: "
                    "install a newer driver",
                    cuda_version(driver), cuda_version(runtime))};
  if (problem == cudaErrorNoDevice)
    return {usage,
            "this host has an NVIDIA driver, but no GPU that this process may use: see whether nvidia-smi "
            "shows one, and that CUDA_VISIBLE_DEVICES does not hide it"};
  return {usage, fmt::format(
                     "this host's GPUs cannot be used: {} (CUDA error {}); see whether nvidia-smi shows them",
                     text, problem)};
}

result<std::vector<device_properties>> cuda_module::devices() const {
  const auto count = count_devices();
  if (!count) return tl::unexpected(count.error());
  std::vector<device_properties> all;
  for (int i = 0; i < *count; ++i) {
    auto found = look_at(i);
    if (!found) return tl::unexpected(found.error());
    all.push_back(std::move(*found));
  }
  return all;
}

/// Nothing is asked of the other GPUs, which may have failed.
result<std::unique_ptr<device>> cuda_module::open(int number, precision arithmetic) {
  const auto count = count_devices();
  if (!count) return tl::unexpected(count.error());
  if (number < 0 || number >= *count)
    return fail(error_code::bad_usage,
                fmt::format("this host has no GPU {}: it has {}, counted from 0", number, *count));
  auto properties = look_at(number);
  if (!properties) return tl::unexpected(properties.error());
  if (properties->compute_capability < compute_capability_min)
    return fail(error_code::bad_usage,
                fmt::format("GPU {} ({}) has compute capability {}.{}: dlrun needs 8.0 or more", number,
                            properties->name, properties->compute_capability / 10,
                            properties->compute_capability % 10));
  return cuda_device::open(number, std::move(*properties), arithmetic);
}

} // namespace dlrun::kernels::cuda
