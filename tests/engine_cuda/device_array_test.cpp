// Memory of a device that grows.
#include "engine/cuda/device_array.hpp"
#include "kernels/cuda/stand_in/stand_in_device.hpp"

#include <gtest/gtest.h>

namespace dlrun::engine {
namespace {

using kernels::cuda::lane;
using kernels::cuda::stand_in_device;

TEST(device_array, what_uses_it_is_done_before_it_grows) {
  for (const auto used : {lane::compute, lane::side}) {
    stand_in_device on({});
    device_array<float> array{on};
    ASSERT_TRUE(array.resize(1));
    float got = 0;
    on.run(used, kernels::cuda::fill{array.data(), 1, 5.0F});
    on.download(used, array.data(), &got, sizeof(got));
    ASSERT_TRUE(array.resize(1000));
    EXPECT_EQ(got, 5.0F);
    EXPECT_TRUE(on.is_idle());
  }
}

TEST(device_array, what_is_large_enough_stays_where_it_is_and_waits_for_nothing) {
  stand_in_device on({});
  pinned_array<float> array{on};
  ASSERT_TRUE(array.resize(10));
  const auto* const before = array.data();
  on.run(lane::compute, kernels::cuda::fill{array.data(), 10, 5.0F});
  ASSERT_TRUE(array.resize(3));
  EXPECT_EQ(array.data(), before);
  EXPECT_FALSE(on.is_idle());
  ASSERT_TRUE(on.finish(lane::compute));
}

TEST(device_array, a_device_without_memory_is_told) {
  stand_in_device on({.memory_bytes = 100});
  device_array<float> array{on};
  EXPECT_EQ(array.resize(26).error().code, error_code::limit_exceeded);
  EXPECT_TRUE(array.resize(25));
}

} // namespace
} // namespace dlrun::engine
