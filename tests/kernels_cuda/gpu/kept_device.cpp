/// The device of the tests on a GPU: number 0 of this host, opened once a precision.

#include "kernels/cuda/cuda_module.hpp"
#include "tests/kernels_cuda/on_device.hpp"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <utility>

namespace dlrun::kernels::cuda {
namespace {

/// In each precision.
device& opened(precision arithmetic) {
  static cuda_module module;
  static std::map<precision, std::unique_ptr<device>> all;
  auto& one = all[arithmetic];
  if (one) return *one;
  auto made = module.open(0, arithmetic);
  if (!made) {
    std::fprintf(stderr, "%s\n", made.error().message.c_str());
    std::abort();
  }
  one = std::move(*made);
  return *one;
}

/// Hands every call to opened(): what a test closes stays open.
class borrowed_device final : public device {
public:
  explicit borrowed_device(precision arithmetic)
      : kept_{opened(arithmetic)} {}

  device_properties properties() const override { return kept_.properties(); }
  precision arithmetic() const override { return kept_.arithmetic(); }
  std::size_t free_bytes() const override { return kept_.free_bytes(); }
  std::size_t library_bytes() const override { return kept_.library_bytes(); }
  result<void*> allocate(std::size_t bytes) override { return kept_.allocate(bytes); }
  void release(void* memory) override { kept_.release(memory); }
  result<void*> allocate_host(std::size_t bytes) override { return kept_.allocate_host(bytes); }
  void release_host(void* memory) override { kept_.release_host(memory); }
  result<std::unique_ptr<host_registration>> register_host(std::span<const std::byte> memory,
                                                           host_access how) override {
    return kept_.register_host(memory, how);
  }
  void upload(lane on, const void* from, void* to, std::size_t bytes) override {
    kept_.upload(on, from, to, bytes);
  }
  void download(lane on, const void* from, void* to, std::size_t bytes) override {
    kept_.download(on, from, to, bytes);
  }
  void run(lane on, const step& what) override { kept_.run(on, what); }
  result<std::unique_ptr<graph>> make_graph(lane on, std::span<const step> steps) override {
    return kept_.make_graph(on, steps);
  }
  void run(graph& what) override { kept_.run(what); }
  result<std::unique_ptr<event>> make_event() override { return kept_.make_event(); }
  void record(lane on, event& at) override { kept_.record(on, at); }
  void wait(lane on, event& at) override { kept_.wait(on, at); }
  result<void> finish(event& at) override { return kept_.finish(at); }
  result<void> finish(lane on) override { return kept_.finish(on); }

private:
  device& kept_;
};

} // namespace

std::unique_ptr<device> test_device(int, precision arithmetic) {
  return std::make_unique<borrowed_device>(arithmetic);
}

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
