/// What `cluster.device: auto` becomes on this host, and which GPUs its workers use.
#pragma once

#include "engine/cuda/compute_place.hpp"
#include "proto/job_spec.pb.h"
#include "runtime/prepared_job.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlrun::runtime {

/// The device that was chosen, and why.
struct device_choice {
  std::string device; ///< "cuda" or "cpu"
  std::string reason; ///< for people: which GPU, or what is missing
};

/// Pure: chooses the GPUs that workers use among those that are there: those that cluster.gpus
/// names, else all. @returns their numbers; bad_usage, naming a GPU and the way out, when one is
/// not there or too old, when two would compute different bits, and when there is none.
result<std::vector<int>> choose_gpus(const spec::JobSpec& spec,
                                     const std::vector<kernels::cuda::device_properties>& there);

/// Pure: whether GPUs would compute in train.precision, whatever `override` says: the value of
/// NVIDIA_TF32_OVERRIDE, by which NVIDIA's libraries leave TF32 out or take it unasked; "" where it
/// is not set. @returns bad_usage where they would not.
result<void> check_override(const spec::JobSpec& spec, std::string_view override);

/// Opens the GPUs of this host for the workers of a job; none for cluster.device: cpu. @returns as
/// kernels::cuda::load_module(), device_module::devices(), choose_gpus() and check_override().
result<engine::gpu_set> open_gpus(const spec::JobSpec& spec);

/// Opens the GPU that a worker's process was given. Touches no other GPU, which may have failed.
/// @returns as kernels::cuda::load_module()
result<engine::gpu_set> open_gpu(const spec::JobSpec& spec, int number);

/// For a run that begins: decides what `cluster.device: auto` becomes, writes that into the
/// specification, and fills in the GPUs of the job. @param has_gpus_here false: the list of hosts
/// says that this one has none, and workers compute on others alone @returns the decision, or
/// nothing when the job names its device; errors as open_gpus(), with what in the job would let it
/// run without GPUs: also for auto, where there are none and cluster.gpus or train.precision needs
/// them, or where this host has none to tell by.
result<std::optional<device_choice>> settle_device(prepared_job& job, bool has_gpus_here = true);

/// For a run that is resumed, whose device is settled. @returns as open_gpus().
result<void> settle_device_again(prepared_job& job, bool has_gpus_here = true);

} // namespace dlrun::runtime
