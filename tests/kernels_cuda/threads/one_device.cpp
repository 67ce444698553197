#include "kernels/cuda/stand_in/stand_in_device.hpp"
#include "tests/kernels_cuda/on_device.hpp"

namespace dlrun::kernels::cuda {

/// The order of threads is the scheduler's.
std::unique_ptr<device> test_device(int, precision arithmetic) {
  return std::make_unique<stand_in_device>(stand_in_settings{.arithmetic = arithmetic});
}

bool has_functions_of_host() { return true; }

int device_variants() { return 1; }

} // namespace dlrun::kernels::cuda
