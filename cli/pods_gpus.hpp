/// GPUs of a job on pods.
#pragma once

#include "cli/kubernetes_objects.hpp"
#include "proto/job_spec.pb.h"

#include <dlrun/error.hpp>
#include <optional>
#include <string>

namespace dlrun::cli {

/// As the options are given, beside pods_wish::gpus.
struct gpu_options {
  std::optional<std::uint32_t> control{}; ///< of the control pod
  std::string resource{};
  std::string runtime_class{};
};

/// Whether workers of `job` can compute on GPUs alone.
bool needs_gpus(const spec::JobSpec& job);

/// Settles what of the GPUs follows from options alone: `wanted.control_gpus` and how nodes are
/// asked for them. @returns bad_usage, naming option, value and way out.
result<void> settle_gpus(const gpu_options& given, pods_wish& wanted);

/// Whether workers of `job` and the GPUs of `wanted` fit each other. What `cluster.device: auto`
/// becomes follows from these, not from the node of the control pod: where it does,
/// `wanted.settles_device`. @returns bad_spec or bad_usage, naming key or option, and way out.
result<void> check_gpus(const spec::JobSpec& job, pods_wish& wanted);

/// For people: GPUs on which no worker computes while all pods are there; "" where there are none.
std::string tell_idle_gpus(const spec::JobSpec& job, const pods_wish& wanted);

} // namespace dlrun::cli
