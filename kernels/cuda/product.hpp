/// Products of matrices, by cuBLASLt.
#pragma once

#include "kernels/cuda/device_api.hpp"
#include "kernels/cuda/steps.hpp"
#include "kernels/cuda/workspace.hpp"

#include <array>
#include <cublasLt.h>
#include <dlrun/error.hpp>
#include <map>
#include <memory>

namespace dlrun::kernels::cuda {

/// Runs product steps in one precision, without TF32 where fp32 is wanted. What computes a product
/// is cuBLASLt's first suggestion among those that sum in a fixed order, for a workspace of a fixed
/// size: a function of the version, the device, the sizes and whether pointers are aligned to 16
/// bytes, never of timing. It adds the row of a product and takes relu, if it keeps NaN as it is:
/// that is tried once for each plan. Of the device that is current when it is made.
class products {
public:
  static result<std::unique_ptr<products>> make(precision arithmetic);
  ~products();
  products(const products&) = delete;
  products& operator=(const products&) = delete;

  /// Puts `what` into the stream, whose workspace is `room`.
  result<void> run(cudaStream_t on, workspace& room, const product& what);

private:
  struct plan;
  using key = std::array<std::int64_t, 9>;

  products(cublasLtHandle_t handle, precision arithmetic);
  result<plan*> plan_for(cudaStream_t on, void* room, const product& what);
  result<std::unique_ptr<plan>> make_plan(const product& what, std::uint32_t alignment, bool relu_inside);
  result<bool> keeps_nan(cudaStream_t on, void* room, const plan& with, const product& what);
  cublasStatus_t multiply(cudaStream_t on, void* room, const plan& with, const product& what,
                          const float* row);

  cublasLtHandle_t handle_;
  precision arithmetic_;
  std::map<key, std::unique_ptr<plan>> plans_;
};

} // namespace dlrun::kernels::cuda
