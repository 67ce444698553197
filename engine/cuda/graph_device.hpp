/// A device whose passes are graphs.
#pragma once

#include "engine/cuda/step_graphs.hpp"
#include "kernels/cuda/device_api.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dlrun::engine {

/// Hands every call to another device. During a pass it gathers the steps that are asked of the
/// lane compute, and gives them to step_graphs when something else is asked of that lane, when the
/// host waits, or when there are step_graphs::steps_max: copies and events are never part of a
/// graph.
class graph_device final : public kernels::cuda::device {
public:
  using lane = kernels::cuda::lane;
  using event = kernels::cuda::event;
  using graph = kernels::cuda::graph;
  using step = kernels::cuda::step;

  explicit graph_device(std::unique_ptr<kernels::cuda::device> inner)
      : inner_{std::move(inner)}
      , graphs_{*inner_} {}

  /// A pass, from its beginning to its end. All that it asked for is done when this device is
  /// destroyed.
  class pass {
  public:
    explicit pass(graph_device& on)
        : on_{on} {
      on_.in_pass_ = true;
    }
    ~pass() {
      on_.flush();
      on_.in_pass_ = false;
    }
    pass(const pass&) = delete;
    pass& operator=(const pass&) = delete;

  private:
    graph_device& on_;
  };
  /// As step_graphs::refused().
  const std::string& refused() const { return graphs_.refused(); }

  kernels::cuda::device_properties properties() const override { return inner_->properties(); }
  kernels::cuda::precision arithmetic() const override { return inner_->arithmetic(); }
  std::size_t free_bytes() const override { return inner_->free_bytes(); }
  std::size_t library_bytes() const override { return inner_->library_bytes(); }
  result<void*> allocate(std::size_t bytes) override { return inner_->allocate(bytes); }
  void release(void* memory) override { inner_->release(memory); }
  result<void*> allocate_host(std::size_t bytes) override { return inner_->allocate_host(bytes); }
  void release_host(void* memory) override { inner_->release_host(memory); }
  result<std::unique_ptr<kernels::cuda::host_registration>>
  register_host(std::span<const std::byte> memory, kernels::cuda::host_access how) override {
    return inner_->register_host(memory, how);
  }
  void upload(lane on, const void* from, void* to, std::size_t bytes) override;
  void download(lane on, const void* from, void* to, std::size_t bytes) override;
  void run(lane on, const step& what) override;
  result<std::unique_ptr<graph>> make_graph(lane on, std::span<const step> steps) override {
    return inner_->make_graph(on, steps);
  }
  void run(graph& what) override;
  result<std::unique_ptr<event>> make_event() override { return inner_->make_event(); }
  void record(lane on, event& at) override;
  void wait(lane on, event& at) override;
  result<void> finish(event& at) override;
  result<void> finish(lane on) override;

private:
  void flush();
  void flush(lane on) {
    if (on == lane::compute) flush();
  }

  std::unique_ptr<kernels::cuda::device> inner_; ///< outlives what follows
  step_graphs graphs_;
  bool in_pass_ = false;
  std::vector<step> pending_; ///< asked for, and not yet put into the lane
};

} // namespace dlrun::engine
