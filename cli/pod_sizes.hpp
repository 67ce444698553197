/// How much memory and disk the pods of a job have.
#pragma once

#include "cli/kubernetes_objects.hpp"
#include "proto/job_spec.pb.h"
#include "runtime/pod_needs.hpp"

#include <cstdint>
#include <dlrun/error.hpp>
#include <optional>
#include <string>

namespace dlrun::cli {

/// Of a size as Kubernetes writes it. @returns nothing where is_size() is false.
std::optional<std::uint64_t> size_bytes(const std::string& text);

/// As Kubernetes writes it, rounded up: memory of pods to 64 MiB, their disks to 256 MiB.
std::string memory_text(std::uint64_t bytes);
std::string disk_text(std::uint64_t bytes);

/// As runtime::pods_at_least() and sizes_of(), of pods such as `wanted` describes.
std::uint32_t pods_at_least(const pods_wish& wanted);
result<runtime::job_sizes> sizes_on_pods(const spec::JobSpec& job, const pods_wish& wanted);

/// Fills in `wanted.memory` and `wanted.disk` where they are "", and how much data the job may
/// decode and its stores may hold where the job does not say it. `job` is complete; its data is not
/// looked at.
/// @returns bad_usage for sizes that are too small, naming option, sum and way out.
result<void> settle_sizes(const spec::JobSpec& job, pods_wish& wanted);

/// The rows of both tables, with their sums, in MiB. @param ps_memory of a pod for PS shards, whose
/// disk is as that of others; none: there are none
std::string table_of(const runtime::pod_needs& needs, const std::vector<runtime::pod_need>& ps_memory = {});

} // namespace dlrun::cli
