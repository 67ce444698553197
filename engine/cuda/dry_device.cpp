#include "engine/cuda/dry_device.hpp"

#include <cstring>
#include <limits>

namespace dlrun::engine {
namespace {

constexpr std::size_t alignment = 256;

class moment final : public kernels::cuda::event {};

} // namespace

kernels::cuda::device_properties dry_device::properties() const {
  return {"nothing (no GPU)", kernels::cuda::compute_capability_min, 1, free_bytes(), "none"};
}

std::size_t dry_device::free_bytes() const { return std::numeric_limits<std::size_t>::max() / 2 - bytes_; }

result<void*> dry_device::allocate(std::size_t bytes) {
  void* const at = reinterpret_cast<void*>(next_); // NOLINT(performance-no-int-to-ptr): a number
  const auto taken = (bytes / alignment + 1) * alignment;
  next_ += taken;
  memory_.emplace(at, taken);
  bytes_ += taken;
  return at;
}

void dry_device::release(void* memory) {
  const auto found = memory_.find(memory);
  bytes_ -= found->second;
  memory_.erase(found);
}

result<void*> dry_device::allocate_host(std::size_t bytes) {
  std::vector<std::byte> memory(bytes + 1);
  void* const at = memory.data();
  host_memory_.emplace(at, std::move(memory));
  return at;
}

void dry_device::release_host(void* memory) { host_memory_.erase(memory); }

result<std::unique_ptr<kernels::cuda::host_registration>>
dry_device::register_host(std::span<const std::byte>, kernels::cuda::host_access) {
  return fail(error_code::bad_usage, "there is no device");
}

void dry_device::upload(lane, const void*, void*, std::size_t) {}

void dry_device::download(lane, const void*, void* to, std::size_t bytes) { std::memset(to, 0, bytes); }

void dry_device::run(lane, const kernels::cuda::step& what) {
  if (heard_) heard_(what);
}

result<std::unique_ptr<kernels::cuda::graph>> dry_device::make_graph(lane,
                                                                     std::span<const kernels::cuda::step>) {
  return fail(error_code::bad_usage, "there is no device");
}

result<std::unique_ptr<kernels::cuda::event>> dry_device::make_event() { return std::make_unique<moment>(); }

} // namespace dlrun::engine
