#include "kernels/cuda/convolution.hpp"

#include "kernels/cuda/alignment.hpp"
#include "kernels/cuda/run_kernels.hpp"

#include <fmt/format.h>

namespace dlrun::kernels::cuda {
namespace {

using pass = convolution::pass;

std::int64_t weight_count(const cpu::convolution_geometry& g) {
  return g.out_channels * g.kernel_height() * g.kernel * g.in_channels;
}

} // namespace

result<std::unique_ptr<convolutions>> convolutions::make(std::int64_t workspace_max, precision arithmetic) {
  cudnnHandle_t handle = nullptr;
  const auto status = cudnnCreate(&handle);
  if (status != CUDNN_STATUS_SUCCESS)
    return fail(error_code::system, fmt::format("cuDNN does not start: {}", cudnnGetErrorString(status)));
  return std::unique_ptr<convolutions>(new convolutions(handle, workspace_max, arithmetic));
}

convolutions::~convolutions() {
  plans_.clear();
  static_cast<void>(cudnnDestroy(handle_));
}

result<const convolution_plan*> convolutions::plan_for(const convolution& what) {
  const auto& g = what.geometry;
  const std::int64_t alignment = common_alignment({what.x, what.w, what.y});
  const key sizes{static_cast<std::int64_t>(what.which),
                  what.batch,
                  g.in_channels,
                  g.height,
                  g.width,
                  g.out_channels,
                  g.out_height,
                  g.out_width,
                  g.kernel,
                  g.stride,
                  g.padding,
                  g.flat,
                  alignment};
  if (const auto kept = plans_.find(sizes); kept != plans_.end()) return &kept->second;
  auto made = convolution_plan::make(plan_device{handle_}, what, arithmetic_, alignment, workspace_max_);
  if (!made) return tl::unexpected(made.error());
  return &plans_.emplace(sizes, std::move(*made)).first->second;
}

result<void> convolutions::run(cudaStream_t on, workspace& room, const convolution& what) {
  if (what.batch == 0) {
    if (what.which == pass::backward_weights)
      run_kernels(on, arithmetic_, clear_activations{what.w, weight_count(what.geometry)});
    return {};
  }
  const auto plan = plan_for(what);
  if (!plan) return tl::unexpected(plan.error());
  const auto memory = room.room(on, (*plan)->workspace());
  if (!memory) return tl::unexpected(memory.error());
  const auto status = cudnnSetStream(handle_, on);
  if (status != CUDNN_STATUS_SUCCESS)
    return fail(error_code::system, fmt::format("cuDNN says {}", cudnnGetErrorString(status)));
  return (*plan)->run(handle_, what, *memory);
}

} // namespace dlrun::kernels::cuda
