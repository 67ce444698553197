/// How cuDNN computes one pass of a convolution.
#pragma once

#include "kernels/cuda/cudnn_descriptor.hpp"
#include "kernels/cuda/device_api.hpp"
#include "kernels/cuda/plan_device.hpp"
#include "kernels/cuda/steps.hpp"

#include <array>
#include <cstdint>
#include <dlrun/error.hpp>
#include <string>
#include <vector>

namespace dlrun::kernels::cuda {

/// One pass for fixed sizes. The first of cuDNN's suggestions, best first, that
/// - computes in the precision that is wanted: with fp32 on no tensor core, since these round what
/// is single precision to TF32; with none from inputs that are made less than they are; with bf16
/// all tensors are that, the gradient by the weights too, since cuDNN gives no other,
/// - sums in single precision, in a fixed order,
/// - needs no compiler at run time, and no more room to compute in than is allowed. A function of
/// cuDNN's version, the device, the sizes, the alignment and that room, never of timing.
class convolution_plan {
public:
  /// `what` says sizes alone; its pointers will be aligned to `alignment` bytes. @returns system
  /// when no suggestion does.
  static result<convolution_plan> make(const plan_device& on, const convolution& what, precision arithmetic,
                                       std::int64_t alignment, std::int64_t workspace_max);

  /// Bytes that run() needs beside the tensors.
  std::size_t workspace() const { return workspace_; }

  /// What cuDNN says of its numbers, and of what it needs.
  std::vector<cudnnBackendNumericalNote_t> numerical_notes() const;
  std::vector<cudnnBackendBehaviorNote_t> behaviour_notes() const;
  /// Of x, w and y, as cuDNN has them: from one to the next record (or output channel), channel,
  /// row, column.
  std::array<std::vector<std::int64_t>, 3> strides() const;
  /// All of it, as JSON: two plans that are written alike compute alike.
  std::string text() const;

  /// Puts it into the stream of `handle`, for which it was made.
  result<void> run(cudnnHandle_t handle, const convolution& what, void* workspace) const;

private:
  explicit convolution_plan(cudnn_descriptor plan);

  cudnn_descriptor plan_;
  std::vector<cudnn_descriptor> graph_; ///< what the plan is made of
  std::size_t workspace_ = 0;
};

/// "forward pass of a convolution, batch 64, 3x224x224 to 64x112x112, kernel 7, stride 2, padding
/// 3".
std::string describe(const convolution& what);

} // namespace dlrun::kernels::cuda
