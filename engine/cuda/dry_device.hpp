/// A device for finding out what a pass asks of one.
#pragma once

#include "kernels/cuda/device_api.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace dlrun::engine {

/// Takes every call, computes nothing and has no memory: its addresses are numbers that nobody
/// reads, aligned as those of a GPU. It makes no graphs, and is told of no memory. What comes from
/// it is 0, so a layer that the host computes would compute with that.
class dry_device final : public kernels::cuda::device {
public:
  using lane = kernels::cuda::lane;
  using event = kernels::cuda::event;
  /// Hears of each step, with addresses of no content.
  using listener = std::function<void(const kernels::cuda::step&)>;

  /// `heard` may be null.
  explicit dry_device(kernels::cuda::precision arithmetic, listener heard = nullptr)
      : arithmetic_{arithmetic}
      , heard_{std::move(heard)} {}

  /// Of the device, that are allocated now.
  std::size_t bytes() const { return bytes_; }

  kernels::cuda::device_properties properties() const override;
  kernels::cuda::precision arithmetic() const override { return arithmetic_; }
  std::size_t free_bytes() const override;
  std::size_t library_bytes() const override { return 0; }
  result<void*> allocate(std::size_t bytes) override;
  void release(void* memory) override;
  result<void*> allocate_host(std::size_t bytes) override;
  void release_host(void* memory) override;
  result<std::unique_ptr<kernels::cuda::host_registration>>
  register_host(std::span<const std::byte> memory, kernels::cuda::host_access how) override;
  void upload(lane on, const void* from, void* to, std::size_t bytes) override;
  void download(lane on, const void* from, void* to, std::size_t bytes) override;
  void run(lane on, const kernels::cuda::step& what) override;
  result<std::unique_ptr<kernels::cuda::graph>>
  make_graph(lane on, std::span<const kernels::cuda::step> steps) override;
  void run(kernels::cuda::graph&) override {}
  result<std::unique_ptr<event>> make_event() override;
  void record(lane, event&) override {}
  void wait(lane, event&) override {}
  result<void> finish(event&) override { return {}; }
  result<void> finish(lane) override { return {}; }

private:
  kernels::cuda::precision arithmetic_;
  listener heard_;
  std::uintptr_t next_ = std::uintptr_t{1} << 40; ///< where nothing is
  std::map<void*, std::size_t> memory_;
  std::map<void*, std::vector<std::byte>> host_memory_;
  std::size_t bytes_ = 0;
};

} // namespace dlrun::engine
