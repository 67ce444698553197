#include "kernels/cuda/cuda_lane.hpp"

#include "kernels/cuda/cuda_call.hpp"

namespace dlrun::kernels::cuda {
namespace {

/// CUDA holds about 1024 launches of a stream, then launching waits: so there are few milestones,
/// and they cost a 64th of a launch. A graph has no more steps (engine/cuda/step_graphs.hpp), so
/// that none of them takes longer than what comes between two milestones.
constexpr int steps_per_milestone = 64;

} // namespace

result<std::unique_ptr<cuda_lane>> cuda_lane::make() {
  cudaStream_t stream = nullptr;
  const auto made = cuda_call(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
  if (!made) return tl::unexpected(made.error());
  return std::unique_ptr<cuda_lane>(new cuda_lane(stream));
}

cuda_lane::~cuda_lane() {
  for (const cudaEvent_t one : milestones_) static_cast<void>(cudaEventDestroy(one));
  for (const cudaEvent_t one : spare_) static_cast<void>(cudaEventDestroy(one));
  static_cast<void>(cudaStreamDestroy(stream_));
}

void cuda_lane::count_steps(int steps) {
  steps_ += steps;
  if (steps_ < steps_per_milestone) return;
  steps_ = 0;
  static_cast<void>(moved());
  add_milestone();
}

void cuda_lane::add_milestone() {
  cudaEvent_t one = nullptr;
  if (!spare_.empty()) {
    one = spare_.back();
    spare_.pop_back();
  } else if (cudaEventCreateWithFlags(&one, cudaEventDisableTiming) != cudaSuccess) {
    return; // one milestone less; what is wrong shows in the next step
  }
  milestones_.push_back(one);
  static_cast<void>(cudaEventRecord(one, stream_));
}

bool cuda_lane::moved() {
  bool any = false;
  while (!milestones_.empty() && cudaEventQuery(milestones_.front()) == cudaSuccess) {
    spare_.push_back(milestones_.front());
    milestones_.pop_front();
    any = true;
  }
  return any;
}

} // namespace dlrun::kernels::cuda
