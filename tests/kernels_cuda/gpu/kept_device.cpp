/// The device of the tests on a GPU: number 0 of this host, opened once.

#include "kernels/cuda/cuda_module.hpp"
#include "tests/kernels_cuda/on_device.hpp"

#include <cstdio>
#include <utility>

namespace dlrun::kernels::cuda {
namespace {

device& kept() {
  static cuda_module module;
  static auto opened = module.open(0, precision::fp32);
  if (!opened) {
    std::fprintf(stderr, "%s\n", opened.error().message.c_str());
    std::abort();
  }
  return **opened;
}

/// Hands every call to kept(): what a test closes stays open.
class borrowed_device final : public device {
public:
  device_properties properties() const override { return kept().properties(); }
  precision arithmetic() const override { return kept().arithmetic(); }
  std::size_t free_bytes() const override { return kept().free_bytes(); }
  std::size_t library_bytes() const override { return kept().library_bytes(); }
  result<void*> allocate(std::size_t bytes) override { return kept().allocate(bytes); }
  void release(void* memory) override { kept().release(memory); }
  result<void*> allocate_host(std::size_t bytes) override { return kept().allocate_host(bytes); }
  void release_host(void* memory) override { kept().release_host(memory); }
  void upload(lane on, const void* from, void* to, std::size_t bytes) override {
    kept().upload(on, from, to, bytes);
  }
  void download(lane on, const void* from, void* to, std::size_t bytes) override {
    kept().download(on, from, to, bytes);
  }
  void run(lane on, const step& what) override { kept().run(on, what); }
  result<std::unique_ptr<event>> make_event() override { return kept().make_event(); }
  void record(lane on, event& at) override { kept().record(on, at); }
  void wait(lane on, event& at) override { kept().wait(on, at); }
  result<void> finish(event& at) override { return kept().finish(at); }
  result<void> finish(lane on) override { return kept().finish(on); }
};

} // namespace

std::unique_ptr<device> test_device(int) { return std::make_unique<borrowed_device>(); }

int device_variants() { return 1; }

bool has_functions_of_host() { return false; }

} // namespace dlrun::kernels::cuda

/// Ends with 77, which is for a test that was skipped, where there is no GPU.
int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  dlrun::kernels::cuda::cuda_module module;
  const auto devices = module.devices();
  if (!devices) {
    std::printf("skipped: %s\n", devices.error().message.c_str());
    return 77;
  }
  for (const auto& one : *devices)
    std::printf("%s, compute capability %d, %s\n", one.name.c_str(), one.compute_capability,
                one.libraries.c_str());
  return RUN_ALL_TESTS();
}
