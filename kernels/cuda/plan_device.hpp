/// For which device cuDNN makes a plan.
#pragma once

#include "kernels/cuda/cudnn_descriptor.hpp"

#include <dlrun/error.hpp>
#include <optional>
#include <string_view>
#include <utility>

namespace dlrun::kernels::cuda {

/// A GPU of this host, or one that is only described: then plans can be made and looked at, and not
/// run. cuDNN suggests the same for both where the descriptions are equal.
class plan_device {
public:
  /// That of `handle`, which outlives this.
  explicit plan_device(cudnnHandle_t handle)
      : handle_(handle) {}
  /// As cuDNN writes a device (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION). @returns bad_data for
  /// what it does not take.
  static result<plan_device> described(std::string_view json);

  // What says to cuDNN which device it is, in a graph, in a question for suggestions, in a plan.

  void name_in_graph(cudnn_descriptor& graph) const;
  void name_in_question(cudnn_descriptor& heuristics) const;
  void name_in_plan(cudnn_descriptor& plan) const;

private:
  explicit plan_device(cudnn_descriptor description)
      : description_(std::move(description)) {}

  cudnnHandle_t handle_ = nullptr;
  std::optional<cudnn_descriptor> description_; ///< where there is no handle
};

} // namespace dlrun::kernels::cuda
