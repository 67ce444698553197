#include "kernels/cuda/plan_device.hpp"

#include <fmt/format.h>
#include <span>

namespace dlrun::kernels::cuda {

result<plan_device> plan_device::described(std::string_view json) {
  cudnn_descriptor description(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  description.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                  std::span<const char>(json.data(), json.size()));
  description.finalize();
  if (description.status() != CUDNN_STATUS_SUCCESS)
    return fail(error_code::bad_data, fmt::format("cuDNN does not take the description of a GPU: {}",
                                                  cudnnGetErrorString(description.status())));
  return plan_device(std::move(description));
}

void plan_device::name_in_graph(cudnn_descriptor& graph) const {
  if (!description_) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle_);
}

void plan_device::name_in_question(cudnn_descriptor& heuristics) const {
  if (description_) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *description_);
}

void plan_device::name_in_plan(cudnn_descriptor& plan) const {
  if (description_)
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *description_);
  else
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle_);
}

} // namespace dlrun::kernels::cuda
