#include "kernels/cuda/cuda_module.hpp"
#include "tests/kernels_cuda/on_device.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

namespace dlrun::kernels::cuda {
namespace {

TEST(gpu_device, says_what_its_bits_depend_on) {
  const auto found = test_device(0)->properties();
  EXPECT_FALSE(found.name.empty());
  EXPECT_GE(found.compute_capability, 80);
  EXPECT_GT(found.multiprocessors, 0);
  EXPECT_GT(found.memory_bytes, std::size_t{1} << 30);
  EXPECT_EQ(found.libraries.find("CUDA 13."), 0U) << found.libraries;
  EXPECT_NE(found.libraries.find("cuDNN 9."), std::string::npos) << found.libraries;
  EXPECT_NE(found.libraries.find("cuBLASLt 13."), std::string::npos) << found.libraries;
}

TEST(gpu_device, that_is_not_there_is_bad_usage_naming_how_many_are) {
  cuda_module module;
  for (const int number : {-1, 1000}) {
    const auto opened = module.open(number, precision::fp32);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, error_code::bad_usage);
    EXPECT_NE(opened.error().message.find("counted from 0"), std::string::npos) << opened.error().message;
  }
}

TEST(gpu_device, memory_is_aligned_counted_and_never_null) {
  const auto there = test_device(0);
  const auto before = there->free_bytes();
  const auto nothing = there->allocate(0);
  ASSERT_TRUE(nothing && *nothing != nullptr);
  const auto much = there->allocate(std::size_t{1} << 30);
  ASSERT_TRUE(much);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(*much) % 256, 0U);
  EXPECT_LE(there->free_bytes() + (std::size_t{1} << 30), before);
  there->release(*much);
  there->release(*nothing);
  const auto of_host = there->allocate_host(0);
  ASSERT_TRUE(of_host && *of_host != nullptr);
  there->release_host(*of_host);
}

TEST(gpu_device, without_enough_memory_says_so_and_goes_on) {
  on_device there(0);
  const auto refused = there.get().allocate(std::size_t{1} << 50);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::limit_exceeded);
  EXPECT_NE(refused.error().message.find("1125899906842624 bytes"), std::string::npos)
      << refused.error().message;
  expect_same_bits(there.get(there.put(std::vector<float>{1, 2}), 2), {1, 2});
}

TEST(gpu_device, an_event_keeps_one_lane_behind_the_other) {
  on_device there(0);
  auto& device = there.get();
  constexpr std::int64_t count = 1 << 24;
  float *const a = there.room<float>(count), *const b = there.room<float>(count);
  auto written = std::move(device.make_event().value()), read = std::move(device.make_event().value());
  for (int i = 1; i <= 20; ++i) {
    const auto value = static_cast<float>(i);
    device.wait(lane::compute, *read);
    device.run(lane::compute, fill{a, count, value});
    device.record(lane::compute, *written);
    device.wait(lane::side, *written);
    device.run(lane::side, copy{a, b, count});
    device.record(lane::side, *read);
    if (i % 7 == 0) {
      ASSERT_TRUE(device.finish(*read));
    }
  }
  ASSERT_TRUE(device.finish(*read));
  const auto got = there.get(b, count);
  EXPECT_EQ(got.front(), 20.0F);
  EXPECT_EQ(got.back(), 20.0F);
}

TEST(gpu_device, copies_are_in_order_with_steps_from_memory_of_either_kind) {
  on_device there(0);
  auto& device = there.get();
  constexpr std::size_t count = 1 << 20, bytes = count * sizeof(float);
  auto* const pinned = static_cast<float*>(device.allocate_host(bytes).value());
  std::fill_n(pinned, count, 2.0F);
  float* const to = there.room<float>(count);
  device.upload(lane::side, pinned, to, bytes);
  device.run(lane::side, add{to, to, to, count});
  device.download(lane::side, to, pinned, bytes);
  ASSERT_TRUE(device.finish(lane::side));
  EXPECT_EQ(pinned[0], 4.0F);
  EXPECT_EQ(pinned[count - 1], 4.0F);
  device.release_host(pinned);
}

/// As parameters and gradients lie: a memfd that is mapped read-only, and one that is written. A
/// driver may refuse either; then copies work all the same. What it says is printed.
TEST(gpu_device, copies_memory_of_the_host_that_it_was_told_of_or_refuses_it) {
  constexpr std::size_t count = 1 << 20, bytes = count * sizeof(float);
  for (const auto how : {host_access::read, host_access::write}) {
    const int fd = ::memfd_create("registered", 0);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(::ftruncate(fd, bytes), 0);
    auto* const written =
        static_cast<float*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    const int protection = how == host_access::read ? PROT_READ : PROT_READ | PROT_WRITE;
    auto* const known = static_cast<float*>(::mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0));
    ASSERT_TRUE(written != MAP_FAILED && known != MAP_FAILED);
    std::fill_n(written, count, 3.0F);
    on_device there(0);
    auto& device = there.get();
    float* const on = there.room<float>(count);
    auto told = device.register_host({reinterpret_cast<const std::byte*>(known), bytes}, how);
    std::printf("%s: %s\n", how == host_access::read ? "mapped read-only" : "mapped to be written",
                told ? "registered" : told.error().message.c_str());
    if (how == host_access::read)
      device.upload(lane::compute, known, on, bytes);
    else
      device.run(lane::compute, fill{on, count, 3.0F});
    device.run(lane::compute, add_floats{on, on, count});
    if (how == host_access::write) device.download(lane::compute, on, known, bytes);
    ASSERT_TRUE(device.finish(lane::compute));
    if (how == host_access::write) {
      EXPECT_EQ(written[count - 1], 6.0F);
    } else {
      EXPECT_EQ(there.get(on, count).back(), 6.0F);
    }
    if (told) told->reset();
    ::munmap(known, bytes);
    ::munmap(written, bytes);
    ::close(fd);
  }
}

TEST(gpu_device, waits_for_more_steps_than_a_stream_holds) {
  on_device there(0);
  float* const to = there.put(std::vector<float>{0.0F});
  const float* const one = there.put(std::vector<float>{1.0F});
  for (int i = 0; i < 5000; ++i) there.get().run(lane::compute, add{to, one, to, 1});
  expect_same_bits(there.get(to, 1), {5000.0F});
}

/// In a process of its own, whose GPU is of no use after that. @returns for exit().
int fail_once() {
  cuda_module module;
  auto opened = module.open(0, precision::fp32);
  if (!opened) return 1;
  auto& device = **opened;
  device.run(lane::compute, fill{reinterpret_cast<float*>(std::uintptr_t{256}), 1000, 1.0F});
  const auto first = device.finish(lane::compute);
  if (first || first.error().code != error_code::system) return 2;
  const auto& text = first.error().message;
  for (const char* const part : {"GPU 0 (", "step fill", "illegal memory access", "CUDA error 700"})
    if (text.find(part) == std::string::npos) return 3;
  device.run(lane::side, fill{nullptr, 0, 1.0F});
  const auto second = device.finish(lane::side);
  if (second || second.error().message != text) return 4;
  const auto memory = device.allocate(100);
  return memory || memory.error().message != text ? 5 : 0;
}

TEST(gpu_device_death, a_failure_names_step_and_cause_and_stays) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::_Exit(fail_once()), testing::ExitedWithCode(0), "");
}

} // namespace
} // namespace dlrun::kernels::cuda
