/// One queue of a device, and whether it moves.
#pragma once

#include <cuda_runtime_api.h>
#include <deque>
#include <dlrun/error.hpp>
#include <memory>
#include <vector>

namespace dlrun::kernels::cuda {

/// A stream with milestones in it: events after every so many steps, by which one who waits for the
/// end sees that it is getting nearer. All calls with the lane's device being the current one.
class cuda_lane {
public:
  static result<std::unique_ptr<cuda_lane>> make();
  ~cuda_lane();
  cuda_lane(const cuda_lane&) = delete;
  cuda_lane& operator=(const cuda_lane&) = delete;

  cudaStream_t stream() const { return stream_; }

  /// So many steps were put into the stream.
  void count_steps(int steps);
  /// Whether a milestone was passed since this was asked last.
  bool moved();

private:
  explicit cuda_lane(cudaStream_t stream)
      : stream_(stream) {}
  void add_milestone();

  cudaStream_t stream_;
  int steps_ = 0;                      ///< since the last milestone
  std::deque<cudaEvent_t> milestones_; ///< in the stream, in its order
  std::vector<cudaEvent_t> spare_;
};

} // namespace dlrun::kernels::cuda
