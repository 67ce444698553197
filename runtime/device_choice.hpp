/// What `cluster.device: auto` becomes on this host, and which GPUs its workers use.
#pragma once

#include "engine/cuda/compute_place.hpp"
#include "proto/job_spec.pb.h"
#include "runtime/prepared_job.hpp"

#include <optional>
#include <string>
#include <vector>

namespace dlrun::runtime {

/// What was found, and what follows.
struct device_choice {
  std::string device; ///< "cuda" or "cpu"
  std::string reason; ///< for people: which GPU, or what is missing
};

/// Pure. The numbers of the GPUs that workers use, of those that are there: what cluster.gpus
/// names, else all. @returns bad_usage, naming a GPU and the way out, when one is not there or too
/// old, when two would compute other bits, and when there is none.
result<std::vector<int>> choose_gpus(const spec::JobSpec& spec,
                                     const std::vector<kernels::cuda::device_properties>& there);

/// The GPUs of this host for the workers of a job; none for cluster.device: cpu. @returns as
/// kernels::cuda::load_module(), device_module::devices() and choose_gpus().
result<engine::gpu_set> open_gpus(const spec::JobSpec& spec);

/// For a worker's process: the GPU of this host that it was given. Nothing is asked of the others,
/// which may have failed. @returns as kernels::cuda::load_module()
result<engine::gpu_set> open_gpu(int number);

/// Of a run that is to begin. Decides what `cluster.device: auto` is, which the specification says
/// from then on, and fills in the GPUs of the job. @returns the decision; nothing for a job that
/// says itself what it wants; else as open_gpus(), where GPUs are asked for.
result<std::optional<device_choice>> settle_device(prepared_job& job);

/// Of a run that goes on, whose device is settled. @returns as open_gpus().
result<void> settle_device_again(prepared_job& job);

} // namespace dlrun::runtime
