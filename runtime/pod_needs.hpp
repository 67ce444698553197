/// What memory and disk a pod of a job on Kubernetes needs (docs/kubernetes.md).
#pragma once

#include "proto/job_spec.pb.h"

#include <cstdint>
#include <dlrun/error.hpp>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::runtime {

/// What of a job takes memory or disk. Sizes are in bytes.
struct job_sizes {
  std::uint64_t parameters = 0;              ///< all of them, once
  std::vector<std::uint64_t> shards{};       ///< of them, the part of each PS shard
  std::uint32_t state_planes = 0;            ///< the optimizer's state is so many times the parameters
  std::uint64_t activations = 0;             ///< of a microbatch, with their gradients and working memory
  std::uint64_t microbatch = 0;              ///< its records and targets
  std::uint32_t workers = 1;                 ///< as many as `dlrun scale` may set where workers_max says it
  std::uint32_t threads_per_worker = 1;      ///< that each keeps busy
  std::uint32_t slots = 1;                   ///< microbatches of a step
  std::uint32_t copies = 0;                  ///< of the store of each PS shard, on other pods
  bool copies_tensors = false;               ///< also within a pod: cluster.tensor_channel is tcp
  bool logs_steps = true;                    ///< it does, or may: durability.log is auto or every_step
  bool retains = true;                       ///< versions are, or may be, in memory that outlives a PS shard
  bool archives = false;                     ///< snapshots are kept while they are archived
  bool evaluates = false;                    ///< there is validation data
  double max_recovery_s = 0.5;               ///< durability.max_recovery
  std::optional<std::uint64_t> disk_quota{}; ///< durability.disk_quota
  bool on_gpus = false;                      ///< workers compute on GPUs: cluster.device is cuda
  /// Then: of a microbatch, what its GPU tells of the outputs, and layers that the host computes.
  std::uint64_t beside_gpu = 0;
  std::uint32_t pods_without_gpus = 0; ///< of those that are the placement's to use: no worker is there
};

/// Of a complete specification, whose data need not be there. @param hosts with so many the job
/// begins at least. @returns bad_spec for a model that cannot be built.
result<job_sizes> sizes_of(const spec::JobSpec& spec, std::size_t hosts);

/// Roles that may be on one pod at a time.
struct pod_share {
  std::uint32_t workers = 0;
  std::uint32_t ps_shards = 0;
  std::uint32_t keepers = 0;
};

/// The most of each on one pod while the job runs on `pods` (at least 1) of equal size or more, all
/// of which are the placement's to use. Those that have GPUs have equally many, or more. Pure, as
/// are the next ones.
pod_share largest_share(const job_sizes& job, std::uint32_t pods);

/// So many pods there are at least while the job runs: of those with which it may begin, the
/// control pod included, one may be away. Where the last host is, everything is.
/// @param spares_control the control pod takes no role while another pod is there; not counted
std::uint32_t pods_at_least(std::uint32_t hosts_min, bool spares_control = false);

/// One row of a table.
struct pod_need {
  std::string what;
  std::uint64_t bytes = 0;
};

struct pod_needs {
  std::vector<pod_need> memory; ///< charged to the pod, each page once
  std::vector<pod_need> disk;   ///< of the folder of the run in a pod
};

/// @param data bytes of the decoded data, which each pod has once
/// @param pods as of largest_share()
pod_needs needs_of_pod(const job_sizes& job, std::uint32_t pods, std::uint64_t data);

/// The same of a pod that takes PS shards and their copies alone: it may have all of them.
pod_needs needs_of_ps_pod(const job_sizes& job, std::uint64_t data);

/// What durability.disk_quota is on such a disk where the job names none: 0.8 of it, so that PS
/// shards pause in order before Kubernetes evicts their pod, or less where more is not stores'. Of
/// a disk as needs_of_pod() has it this is as much as the stores need.
std::uint64_t quota_on_disk(const job_sizes& job, std::uint64_t disk);

std::uint64_t sum_of(const std::vector<pod_need>& rows);

} // namespace dlrun::runtime
