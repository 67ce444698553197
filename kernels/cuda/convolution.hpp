/// Convolutions, by cuDNN.
#pragma once

#include "kernels/cuda/convolution_plan.hpp"
#include "kernels/cuda/workspace.hpp"

#include <array>
#include <map>
#include <memory>

namespace dlrun::kernels::cuda {

/// Runs convolution steps. Plans are kept by sizes. Of the device that is current when it is made.
class convolutions {
public:
  /// What a convolution may need to compute in: more is faster for large ones.
  static result<std::unique_ptr<convolutions>> make(std::int64_t workspace_max, precision arithmetic);
  ~convolutions();
  convolutions(const convolutions&) = delete;
  convolutions& operator=(const convolutions&) = delete;

  /// Puts `what` into the stream, whose workspace is `room`.
  result<void> run(cudaStream_t on, workspace& room, const convolution& what);

private:
  using key = std::array<std::int64_t, 13>;

  convolutions(cudnnHandle_t handle, std::int64_t workspace_max, precision arithmetic)
      : handle_(handle)
      , workspace_max_(workspace_max)
      , arithmetic_(arithmetic) {}
  result<const convolution_plan*> plan_for(const convolution& what);

  cudnnHandle_t handle_;
  std::int64_t workspace_max_;
  precision arithmetic_;
  std::map<key, convolution_plan> plans_;
};

} // namespace dlrun::kernels::cuda
