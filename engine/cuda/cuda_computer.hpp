/// A model on a GPU.
#pragma once

#include "engine/computer.hpp"
#include "engine/cuda/host_watch.hpp"
#include "kernels/cuda/device_api.hpp"

#include <memory>
#include <string>

namespace dlrun::engine {

/// A computer for `model` on `device`. Metrics, and layers of a program's own, are computed by the
/// host, with `threads` (at least 1) OpenMP threads. Vectors lie in the memory of the device. `now`
/// is read when the device has done all that it was asked for.
std::unique_ptr<computer> make_cuda_computer(std::shared_ptr<const model> model, int threads,
                                             std::unique_ptr<kernels::cuda::device> device,
                                             host_watch::clock now = std::chrono::steady_clock::now);

/// What the bits of a device's arithmetic depend on, on one line.
std::string device_fingerprint(const kernels::cuda::device& device);

} // namespace dlrun::engine
