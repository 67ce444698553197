/// Steps as a CUDA graph.
#pragma once

#include "kernels/cuda/device_api.hpp"

#include <array>
#include <cuda_runtime_api.h>
#include <dlrun/error.hpp>
#include <functional>
#include <string>
#include <vector>

namespace dlrun::kernels::cuda {

/// The addresses of the memory that steps of a lane compute in.
using lane_rooms = std::array<const void*, 3>;

/// What a stream was given while it captured. Of the device that is current when it is made. Keeps
/// the steps, for a lane whose memory has moved since.
class cuda_graph final : public graph {
public:
  cuda_graph(lane on, std::span<const step> steps);
  ~cuda_graph() override;

  lane on() const { return on_; }
  const std::vector<step>& steps() const { return steps_; }
  /// What errors call it.
  const std::string& name() const { return name_; }

  /// Captures what `put` gives the stream for each step, in place of what was captured before, and
  /// brings it to the device. `rooms`: of the lane now. Only calls of this thread can spoil it
  /// (cudaStreamCaptureModeThreadLocal): workers and evaluations have a thread each, and may ask
  /// for memory when they like. @returns system or limit_exceeded; the stream is as before.
  result<void> capture(cudaStream_t stream, const lane_rooms& rooms,
                       const std::function<result<void>(const step&)>& put);
  /// Whether it computes in the memory that the lane has.
  bool fits(const lane_rooms& rooms) const { return made_ != nullptr && rooms == rooms_; }
  result<void> launch(cudaStream_t stream) const;

private:
  void destroy();

  lane on_;
  std::vector<step> steps_;
  std::string name_;
  cudaGraphExec_t made_ = nullptr;
  lane_rooms rooms_{};
};

} // namespace dlrun::kernels::cuda
