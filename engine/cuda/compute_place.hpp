/// Where a model computes: on the processor, or on a GPU.
#pragma once

#include "engine/computer.hpp"
#include "kernels/cuda/device_api.hpp"

#include <dlrun/ids.hpp>
#include <memory>
#include <string>
#include <vector>

namespace dlrun::engine {

/// What one computer is made on.
struct compute_place {
  int threads = 1;                              ///< OpenMP threads a microbatch, as for make_computer()
  kernels::cuda::device_module* cuda = nullptr; ///< outlives the computer; null: the processor
  int gpu = 0;                                  ///< its number there
  kernels::cuda::precision arithmetic = kernels::cuda::precision::fp32; ///< of the GPU
};

/// The GPUs that the workers of a job use; none: they compute on the processor.
struct gpu_set {
  kernels::cuda::device_module* cuda = nullptr; ///< outlives the computers; null: none
  std::vector<int> numbers{};                   ///< not empty where there are some
  kernels::cuda::precision arithmetic = kernels::cuda::precision::fp32;

  /// Worker i gets number i, from the start again after the last.
  compute_place place_of(worker_id worker, int threads) const {
    if (cuda == nullptr) return {.threads = threads};
    return {threads, cuda, numbers.at(worker.value % numbers.size()), arithmetic};
  }
};

/// A computer, and what it computes on.
struct placed_computer {
  std::unique_ptr<engine::computer> computer;
  std::string device; ///< "cpu", or as device_fingerprint()
};

/// A computer for `model` at `place`. @returns as may_have_threads() and device_module::open().
result<placed_computer> make_computer_at(const compute_place& place, std::shared_ptr<const model> model);

} // namespace dlrun::engine
