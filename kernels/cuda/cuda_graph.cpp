#include "kernels/cuda/cuda_graph.hpp"

#include "kernels/cuda/cuda_call.hpp"
#include "kernels/cuda/step_name.hpp"

#include <utility>

namespace dlrun::kernels::cuda {
namespace {

/// A graph that only says what is to be done.
struct captured {
  cudaGraph_t raw = nullptr;
  captured() = default;
  ~captured() {
    if (raw != nullptr) static_cast<void>(cudaGraphDestroy(raw));
  }
  captured(const captured&) = delete;
  captured& operator=(const captured&) = delete;
};

/// @returns the first error. A capture that was begun is ended whatever happens.
result<void> record(cudaStream_t stream, std::span<const step> steps,
                    const std::function<result<void>(const step&)>& put, captured& into) {
  if (auto begun =
          cuda_call(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "beginning a graph");
      !begun)
    return begun;
  result<void> all;
  for (const auto& one : steps) {
    all = put(one);
    if (all) all = cuda_call(cudaGetLastError(), step_name(one));
    if (!all) break;
  }
  const auto ended = cuda_call(cudaStreamEndCapture(stream, &into.raw), "ending a graph");
  return all ? ended : all;
}

} // namespace

cuda_graph::cuda_graph(lane on, std::span<const step> steps)
    : on_(on)
    , steps_(steps.begin(), steps.end())
    , name_(steps.empty() ? "(none)"
                          : fmt::format("{} to {} of {} steps", step_name(steps.front()),
                                        step_name(steps.back()), steps.size())) {}

cuda_graph::~cuda_graph() { destroy(); }

void cuda_graph::destroy() {
  if (made_ != nullptr) static_cast<void>(cudaGraphExecDestroy(std::exchange(made_, nullptr)));
}

result<void> cuda_graph::capture(cudaStream_t stream, const lane_rooms& rooms,
                                 const std::function<result<void>(const step&)>& put) {
  destroy();
  captured what;
  if (auto done = record(stream, steps_, put, what); !done) return done;
  if (auto done = cuda_call(cudaGraphInstantiate(&made_, what.raw, 0), "making a graph"); !done) {
    made_ = nullptr;
    return done;
  }
  rooms_ = rooms;
  return cuda_call(cudaGraphUpload(made_, stream), "bringing a graph to the GPU");
}

result<void> cuda_graph::launch(cudaStream_t stream) const {
  return cuda_call(cudaGraphLaunch(made_, stream), "starting a graph");
}

} // namespace dlrun::kernels::cuda
