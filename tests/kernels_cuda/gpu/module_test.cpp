#include "kernels/cuda/alignment.hpp"
#include "kernels/cuda/build_id.hpp"
#include "kernels/cuda/cuda_module.hpp"
#include "kernels/cuda/patience.hpp"
#include "kernels/cuda/step_name.hpp"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <filesystem>
#include <gtest/gtest.h>

namespace dlrun::kernels::cuda {
namespace {

using namespace std::chrono_literals;

/// Of the module that lies with this program: ../lib.
device_module_entry* entry_of_file() {
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  const auto module = program.parent_path().parent_path() / "lib/libdlrun_cuda.so";
  void* const file = dlopen(module.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (file == nullptr) ADD_FAILURE() << dlerror();
  return file == nullptr ? nullptr
                         : reinterpret_cast<device_module_entry*>(dlsym(file, "dlrun_device_module_1"));
}

TEST(cuda_module, of_another_build_is_none) {
  auto* const entry = entry_of_file();
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry("0.0.9 of another compiler"), nullptr);
  EXPECT_EQ(entry(""), nullptr);
  EXPECT_EQ(entry(nullptr), nullptr);
  device_module* const module = entry(build_id);
  ASSERT_NE(module, nullptr);
  EXPECT_EQ(entry(build_id), module);
}

TEST(cuda_module, says_what_there_is_or_what_is_missing) {
  auto* const entry = entry_of_file();
  ASSERT_NE(entry, nullptr);
  const auto all = entry(build_id)->devices();
  if (all) {
    EXPECT_FALSE(all->empty());
  } else {
    EXPECT_EQ(all.error().code, error_code::bad_usage);
    EXPECT_EQ(all.error().message.find("this host"), 0U) << all.error().message;
    const auto opened = entry(build_id)->open(0, precision::fp32);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().message, all.error().message);
  }
}

TEST(cuda_module, tells_the_reasons_for_having_no_device_apart) {
  const auto text = [](int problem, int driver) {
    const auto found = no_devices(problem, "CUDA's text", driver, 13000);
    EXPECT_EQ(found.code, error_code::bad_usage);
    return found.message;
  };
  EXPECT_NE(text(cudaErrorInsufficientDriver, 0).find("no NVIDIA driver"), std::string::npos);
  EXPECT_NE(text(cudaErrorInsufficientDriver, 12040)
                .find("driver is made for CUDA 12.4, and dlrun's CUDA module "
                      "needs CUDA 13.0"),
            std::string::npos);
  EXPECT_NE(text(cudaErrorNoDevice, 13000).find("no GPU that this process may use"), std::string::npos);
  EXPECT_NE(text(999, 13000).find("CUDA's text (CUDA error 999)"), std::string::npos);
}

TEST(step_name, is_the_name_of_the_struct) {
  EXPECT_EQ(step_name(fill{}), "fill");
  EXPECT_EQ(step_name(softmax_forward{}), "softmax_forward");
  EXPECT_EQ(step_name(convolution{}), "convolution");
}

TEST(common_alignment, sees_whether_all_are_aligned_to_16_bytes_and_no_more) {
  const auto at = [](std::uintptr_t address) { return reinterpret_cast<const void*>(address); };
  EXPECT_EQ(common_alignment({at(256), at(16), nullptr}), 16U);
  EXPECT_EQ(common_alignment({at(256), at(260)}), 4U);
  EXPECT_EQ(common_alignment({at(8)}), 4U);
}

TEST(patience, looks_then_sleeps_then_gives_up_when_nothing_moves) {
  const patience::time_point began{};
  patience waiting(began);
  EXPECT_EQ(waiting.next(began + 99us, false), patience::verdict::look_again);
  EXPECT_EQ(waiting.next(began + 100us, false), patience::verdict::sleep);
  EXPECT_EQ(waiting.next(began + 9999ms, false), patience::verdict::sleep);
  EXPECT_EQ(waiting.next(began + 10s, false), patience::verdict::give_up);
}

TEST(patience, lasts_as_long_as_something_moves) {
  const patience::time_point began{};
  patience waiting(began);
  for (int i = 1; i < 100; ++i) EXPECT_EQ(waiting.next(began + i * 9s, true), patience::verdict::sleep);
  EXPECT_EQ(waiting.next(began + 99 * 9s + 9999ms, false), patience::verdict::sleep);
  EXPECT_EQ(waiting.next(began + 99 * 9s + 10s, false), patience::verdict::give_up);
}

} // namespace
} // namespace dlrun::kernels::cuda
