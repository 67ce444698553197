#include "kernels/cuda/stand_in/stand_in_device.hpp"
#include "tests/kernels_cuda/on_device.hpp"

#include <array>
#include <cstdlib>
#include <string>

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

/// What flipped_bits_test.py asks for: a bit, in another word of each variant, of the first step
/// that writes anything.
stand_in_faults asked_faults(int number) {
  const char* const bit = std::getenv("DLRUN_FLIPPED_BIT");
  if (bit == nullptr) return {};
  return {.flips_bit_at_step = 1, .flip_seed = std::stoull(bit) + 32 * static_cast<std::uint64_t>(number)};
}

} // namespace

std::unique_ptr<device> test_device(int number, precision arithmetic) {
  const auto& one = variants.at(static_cast<std::size_t>(number));
  return std::make_unique<stand_in_device>(stand_in_settings{
      .order = one.order, .seed = one.seed, .faults = asked_faults(number), .arithmetic = arithmetic});
}

bool has_functions_of_host() { return true; }

int device_variants() { return static_cast<int>(variants.size()); }

} // namespace dlrun::kernels::cuda
