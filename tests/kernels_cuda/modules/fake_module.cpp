// A module as the loader meets it, with devices that cannot be opened. Which one, the build says:
// FAKE_DEVICES of one kind (or each of another, FAKE_MIXED), FAKE_CAPABILITY, FAKE_NO_DRIVER,
// FAKE_OTHER_BUILD.
#include "kernels/cuda/build_id.hpp"
#include "kernels/cuda/device_api.hpp"

#include <fmt/format.h>
#include <string_view>

namespace dlrun::kernels::cuda {
namespace {

#ifndef FAKE_DEVICES
#define FAKE_DEVICES 2
#endif
#ifndef FAKE_CAPABILITY
#define FAKE_CAPABILITY 90
#endif

class fake_module final : public device_module {
public:
  result<std::vector<device_properties>> devices() const override {
#ifdef FAKE_NO_DRIVER
    return fail(error_code::bad_usage, "there is no NVIDIA driver (libcuda.so.1); install one");
#else
    std::vector<device_properties> all;
    for (int i = 0; i < FAKE_DEVICES; ++i)
      all.push_back({.name = "Fake GPU",
                     .compute_capability = FAKE_CAPABILITY,
                     .multiprocessors = 4,
                     .memory_bytes = 1 << 20,
                     .libraries = "Fake CUDA 1.0"});
#ifdef FAKE_MIXED
    for (int i = 0; i < FAKE_DEVICES; ++i) all[i].multiprocessors += i;
#endif
    return all;
#endif
  }
  result<std::unique_ptr<device>> open(int number, precision /*arithmetic*/) override {
    return fail(error_code::system, fmt::format("GPU {} does not answer", number));
  }
};

} // namespace
} // namespace dlrun::kernels::cuda

extern "C" dlrun::kernels::cuda::device_module* dlrun_device_module_1(const char* build) {
  static dlrun::kernels::cuda::fake_module module;
#ifdef FAKE_OTHER_BUILD
  static_cast<void>(build);
  return nullptr;
#else
  return std::string_view{build} == dlrun::kernels::cuda::build_id ? &module : nullptr;
#endif
}
