/// What tests of kernels share: vectors on a device, steps that are run at once, equal bits.
#pragma once

#include "kernels/cuda/device_api.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <utility>
#include <vector>

namespace dlrun::kernels::cuda {

/// The device that the tests run on: a new one for each call, or one that is kept. Another program
/// gives another device. `variant` is one of device_variants().
std::unique_ptr<device> test_device(int variant, precision arithmetic = precision::fp32);
/// How many there are: a stand-in has one for each order in which threads may run.
int device_variants();

template <class Value>
auto bits_of(Value value) {
  if constexpr (sizeof(Value) == sizeof(std::uint64_t))
    return std::bit_cast<std::uint64_t>(value);
  else
    return std::bit_cast<std::uint32_t>(value);
}

/// Fails with the first element whose bits differ. NaNs are the same whatever they carry.
template <class Value>
void expect_same_bits(const std::vector<Value>& got, const std::vector<Value>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] != got[i] && wanted[i] != wanted[i]) continue;
    ASSERT_EQ(bits_of(got[i]), bits_of(wanted[i]))
        << "element " << i << " of " << got.size() << " is " << got[i] << ", not " << wanted[i];
  }
}

/// Whether the device calls the same functions of <cmath> as kernels/cpu. Where it does not, they
/// may be a few units of the last place away.
bool has_functions_of_host();

/// Fails with the first element that does not come from the same functions: other bits, or on a
/// device with its own functions more than a relative 2e-6, or an absolute 1e-6, away. `times`:
/// what each function's value was multiplied with, or empty: the absolute distance may be so much
/// larger.
inline void expect_same_functions(const std::vector<float>& got, const std::vector<float>& wanted,
                                  const std::vector<float>& times = {}) {
  if (has_functions_of_host()) return expect_same_bits(got, wanted);
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] == wanted[i] || (std::isnan(got[i]) && std::isnan(wanted[i]))) continue;
    const float factor = times.empty() ? 1.0F : std::max(1.0F, std::fabs(times[i]));
    ASSERT_NEAR(got[i], wanted[i], 1e-6F * factor + 2e-6F * std::fabs(wanted[i])) << "element " << i;
  }
}

/// Floats of which some are 0, -0, NaN, infinite or subnormal, unless all are `ordinary`.
inline std::vector<float> some_floats(std::int64_t count, unsigned seed, bool ordinary = false) {
  constexpr float odd[] = {0.0F, -0.0F, NAN, INFINITY, -INFINITY, 1e-40F, -1e-40F, 3e38F};
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0F, 2.0F);
  std::vector<float> out(static_cast<std::size_t>(count));
  for (float& value : out) value = !ordinary && random() % 8 == 0 ? odd[random() % 8] : normal(random);
  return out;
}

/// A device with what is on it. Vectors are released with it.
class on_device {
public:
  explicit on_device(int variant)
      : on_device(test_device(variant)) {}
  explicit on_device(std::unique_ptr<device> opened)
      : device_(std::move(opened)) {}
  ~on_device() {
    for (void* const one : memory_) device_->release(one);
  }
  on_device(const on_device&) = delete;
  on_device& operator=(const on_device&) = delete;

  device& get() { return *device_; }

  /// A copy of `values` there.
  template <class Value>
  Value* put(const std::vector<Value>& values) {
    Value* const to = room<Value>(static_cast<std::int64_t>(values.size()));
    device_->upload(lane::compute, values.data(), to, values.size() * sizeof(Value));
    finish();
    return to;
  }
  /// Room for `count` values, of no certain content.
  template <class Value>
  Value* room(std::int64_t count) {
    const auto memory = device_->allocate(static_cast<std::size_t>(count) * sizeof(Value));
    EXPECT_TRUE(memory.has_value());
    memory_.push_back(*memory);
    return static_cast<Value*>(*memory);
  }
  /// What lies there.
  template <class Value>
  std::vector<Value> get(const Value* from, std::int64_t count) {
    std::vector<Value> out(static_cast<std::size_t>(count));
    device_->download(lane::compute, from, out.data(), out.size() * sizeof(Value));
    finish();
    return out;
  }
  /// Runs one step to its end.
  void run(const step& what) {
    device_->run(lane::compute, what);
    finish();
  }

private:
  void finish() {
    const auto done = device_->finish(lane::compute);
    EXPECT_TRUE(done.has_value()) << (done ? "" : done.error().message);
  }

  std::unique_ptr<device> device_;
  std::vector<void*> memory_;
};

/// Sizes that go wrong first: none, one, odd, about a warp and a block, more than all threads of a
/// small grid.
inline const std::vector<std::int64_t>& awkward_sizes() {
  static const std::vector<std::int64_t> sizes{0, 1, 3, 31, 33, 255, 257, 4099};
  return sizes;
}

/// Runs a test on each variant of the device: GetParam().
class on_each_device : public testing::TestWithParam<int> {};

} // namespace dlrun::kernels::cuda

/// Says once a file which tests of a suite run on each variant.
#define DLRUN_ON_EACH_DEVICE(suite)                                                                          \
  INSTANTIATE_TEST_SUITE_P(variant, suite, testing::Range(0, dlrun::kernels::cuda::device_variants()))
