#include "kernels/cuda/stand_in/stand_in_device.hpp"
#include "tests/kernels_cuda/on_device.hpp"

#include <array>

namespace dlrun::kernels::cuda {
namespace {

struct variant {
  thread_order order;
  std::uint64_t seed;
};
constexpr std::array<variant, 4> variants{{{thread_order::ascending, 1},
                                           {thread_order::descending, 1},
                                           {thread_order::seeded, 1},
                                           {thread_order::seeded, 2}}};

} // namespace

std::unique_ptr<device> test_device(int number, precision arithmetic) {
  const auto& one = variants.at(static_cast<std::size_t>(number));
  return std::make_unique<stand_in_device>(
      stand_in_settings{.order = one.order, .seed = one.seed, .arithmetic = arithmetic});
}

bool has_functions_of_host() { return true; }

int device_variants() { return static_cast<int>(variants.size()); }

} // namespace dlrun::kernels::cuda
