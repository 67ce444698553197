/// A GPU, by CUDA's runtime, cuBLASLt and cuDNN.
#pragma once

#include "kernels/cuda/convolution.hpp"
#include "kernels/cuda/cuda_graph.hpp"
#include "kernels/cuda/cuda_lane.hpp"
#include "kernels/cuda/device_api.hpp"
#include "kernels/cuda/product.hpp"

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace dlrun::kernels::cuda {

/// An open device. Lanes are streams that wait for no other.
class cuda_device final : public device {
public:
  /// @returns system, or limit_exceeded where others have the memory that libraries need to start.
  static result<std::unique_ptr<device>> open(int number, device_properties properties, precision arithmetic);
  ~cuda_device() override;

  device_properties properties() const override { return properties_; }
  precision arithmetic() const override { return arithmetic_; }
  std::size_t free_bytes() const override;
  std::size_t library_bytes() const override;

  result<void*> allocate(std::size_t bytes) override;
  void release(void* memory) override;
  result<void*> allocate_host(std::size_t bytes) override;
  void release_host(void* memory) override;
  result<std::unique_ptr<host_registration>> register_host(std::span<const std::byte> memory,
                                                           host_access how) override;
  void upload(lane on, const void* from, void* to, std::size_t bytes) override;
  void download(lane on, const void* from, void* to, std::size_t bytes) override;

  void run(lane on, const step& what) override;
  result<std::unique_ptr<graph>> make_graph(lane on, std::span<const step> steps) override;
  void run(graph& what) override;

  result<std::unique_ptr<event>> make_event() override;
  void record(lane on, event& at) override;
  void wait(lane on, event& at) override;
  result<void> finish(event& at) override;
  result<void> finish(lane on) override;

private:
  /// What a lane has.
  struct queue_state {
    std::unique_ptr<cuda_lane> lane;
    workspace for_products, for_convolutions, scratch;

    lane_rooms rooms() const { return {for_products.memory(), for_convolutions.memory(), scratch.memory()}; }
  };

  cuda_device(int number, device_properties properties, precision arithmetic);
  result<void> start();
  queue_state& state(lane on) { return queues_.at(static_cast<std::size_t>(on)); }
  /// Makes the device the current one. @returns whether it is still of use.
  bool ready();
  result<void> put(queue_state& here, const step& what);
  void note(cudaError_t code, std::string_view doing);
  void note(const result<void>& done);
  void copy(lane on, const void* from, void* to, std::size_t bytes, cudaMemcpyKind kind);
  result<void> wait_for(const std::function<cudaError_t()>& query);

  int number_;
  device_properties properties_;
  precision arithmetic_;
  std::array<queue_state, 2> queues_;
  std::unique_ptr<products> products_;
  std::unique_ptr<convolutions> convolutions_;
  std::string last_step_ = "(none)"; ///< or graph, that was put into a lane
  std::optional<error> failed_;      ///< the first failure
};

} // namespace dlrun::kernels::cuda
