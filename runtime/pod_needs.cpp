#include "runtime/pod_needs.hpp"

#include "actors/common/job_context.hpp"
#include "actors/protocol/reduction_tree.hpp"
#include "actors/ps_shard/copy_book.hpp"
#include "engine/network.hpp"
#include "engine/optimizer.hpp"
#include "job/choices.hpp"
#include "job/quantity.hpp"
#include "persistence/shard_store.hpp"
#include "runtime/replicas_choice.hpp"

#include <algorithm>
#include <bit>
#include <dlrun/check.hpp>
#include <fmt/format.h>
#include <functional>
#include <numeric>
#include <variant>

namespace dlrun::runtime {
namespace {

constexpr std::uint64_t kib = 1024, mib = 1024 * kib;

/// What each process has beside the rows, that of the kernel included: what was measured at a job
/// of a few KiB, and half as much again.
constexpr std::uint64_t root_bytes = 14 * mib;
constexpr std::uint64_t coordinator_bytes = 7 * mib;
constexpr std::uint64_t ps_shard_bytes = 12 * mib; // the memory of RocksDB fills up in longer jobs
constexpr std::uint64_t keeper_bytes = 12 * mib;
constexpr std::uint64_t worker_bytes = 12 * mib;
/// An allowance, which nobody has measured: the libraries of CUDA take 200 MB of the host
/// (kernels/cuda/module.hpp), and the context and the code of the kernels that a worker uses as
/// much again or more. An agent looks which GPUs there are.
constexpr std::uint64_t cuda_worker_bytes = 1024 * mib;
constexpr std::uint64_t cuda_agent_bytes = 512 * mib;

/// Versions of the parameters that a PS shard serves (R8), and of a worker's copy of them.
constexpr std::uint64_t versions_kept = 2;
/// Sums of gradients that a PS shard keeps room for.
constexpr std::uint64_t sums_kept = 4;
/// Blocks that a snapshot may hold back while the next version is made.
constexpr std::uint64_t image_blocks = 64;
/// Copies of segments that a process keeps room for when nobody uses them.
constexpr std::uint64_t spare_copies = 8;

/// Of a store: the newest two snapshots that all have, and one that is written.
constexpr std::uint64_t snapshots_kept = 3;
/// While they are archived: the newest, two that wait for their evaluation, and the best.
constexpr std::uint64_t snapshots_archived = 4;
/// As fast as a log is verified and applied again at most: the log is cut when that takes half of
/// durability.max_recovery, or is a minute old, whichever comes first.
constexpr double replay_bytes_per_s = 2e9, log_bytes_per_s = 0.5e9;
constexpr double log_age_s = 60;
/// Of the smallest models, and what the record of a step has beside its gradient.
constexpr double steps_per_s_max = 5000, record_head_bytes = 256;
/// Files of a log that are kept to be written over, and what RocksDB has.
constexpr std::uint64_t spare_segment_bytes = 256 * mib, database_bytes = 32 * mib;
/// Logs of roles, journal, events and report of a run.
constexpr std::uint64_t folder_bytes = 64 * mib;

std::uint64_t floats(std::uint64_t count) { return count * sizeof(float); }

std::uint64_t working_floats(const engine::model& model) {
  std::uint64_t sum = 0;
  for (const auto& node : model.nodes()) sum += static_cast<std::uint64_t>(node.layer->output_size());
  return sum;
}

/// Of a record: its outputs, for the metrics; of a layer that the host computes what it reads and
/// writes, with gradients, and as much as it writes for what it keeps.
std::uint64_t floats_beside_gpu(const engine::model& model) {
  auto sum = static_cast<std::uint64_t>(model.nodes().back().layer->output_size());
  for (const auto& node : model.nodes()) {
    const auto& layer = *node.layer;
    if (!std::holds_alternative<engine::host_description>(layer.describe())) continue;
    sum += 3 * static_cast<std::uint64_t>(layer.output_size());
    for (const auto& input : layer.input_shapes())
      sum += 2 * static_cast<std::uint64_t>(element_count(input).value_or(0));
  }
  return sum;
}

std::uint64_t largest(const std::vector<std::uint64_t>& shards) {
  return shards.empty() ? 0 : *std::ranges::max_element(shards);
}

/// Of the largest `count` of them.
std::uint64_t largest(std::vector<std::uint64_t> shards, std::uint32_t count) {
  std::ranges::sort(shards, std::greater{});
  shards.resize(std::min<std::size_t>(shards.size(), count));
  return std::accumulate(shards.begin(), shards.end(), std::uint64_t{0});
}

std::uint32_t rounded_up(std::uint32_t of, std::uint32_t by) { return (of + by - 1) / by; }

/// Gradients that a worker with an even share of the slots makes of a step.
std::uint32_t nodes_of_a_worker(const job_sizes& job) {
  const auto share = rounded_up(job.slots, job.workers);
  const protocol::reduction_tree tree{job.slots};
  std::size_t most = 1;
  for (std::uint32_t begin = 0; begin < job.slots; begin += share)
    most = std::max(most, tree.cover(protocol::make_slot_range(begin, begin + share)).size());
  return static_cast<std::uint32_t>(most);
}

/// With a log a worker keeps a step until all PS shards have committed it, else until all have
/// applied it (R10).
std::uint32_t steps_kept(const job_sizes& job) {
  return job.logs_steps ? common::early_publish_bound + 2 : 2;
}

class memory_rows {
public:
  memory_rows(const job_sizes& job, const pod_share& share, std::uint64_t data)
      : job_{job}
      , share_{share}
      , shards_{largest(job.shards, share.ps_shards)} {
    add_shards();
    add_workers();
    if (share.keepers > 0)
      add(fmt::format("records on their way to {} copies", share.keepers),
          ps_shard::copy_book::lag_max * largest(job.shards, share.keepers));
    add("decoded data", data);
    add_processes();
  }
  std::vector<pod_need> take() { return std::move(rows_); }

private:
  void add(std::string what, std::uint64_t bytes) {
    if (bytes > 0) rows_.push_back({std::move(what), bytes});
  }

  void add_shards() {
    const auto state_versions = job_.retains ? 2U : 1U;
    const auto made = versions_kept + std::uint64_t{job_.state_planes} * state_versions; // of the parameters
    add(fmt::format("parameters of {} PS shards, {} versions", share_.ps_shards, versions_kept),
        versions_kept * shards_);
    add(fmt::format("optimizer state, {}", job_.retains ? "2 versions" : "1 version"),
        shards_ * job_.state_planes * state_versions);
    add("a PS shard that starts anew, or makes a snapshot of a version that is past",
        made * largest(job_.shards));
    add("sums of gradients", sums_kept * shards_);
    const auto image = std::uint64_t{share_.ps_shards} * image_blocks *
                       floats(engine::parameter_layout::block_size) * (1 + job_.state_planes);
    add("state that a snapshot holds back", std::min(image, shards_ * (1 + job_.state_planes)));
    if (job_.evaluates) add("parameters that are lent to be evaluated", shards_);
    const auto away = job_.copies_tensors ? job_.workers : job_.workers - share_.workers;
    if (away > 0)
      add(fmt::format("copies of gradients of {} workers", away),
          shards_ * std::max<std::uint64_t>(spare_copies, std::uint64_t{2} * away * nodes_of_a_worker(job_)));
  }

  void add_workers() {
    if (share_.workers == 0) return;
    const std::uint64_t workers = share_.workers;
    const auto slots = rounded_up(job_.slots, job_.workers);
    const auto kept = std::uint64_t{steps_kept(job_)} * nodes_of_a_worker(job_) + 1 +
                      static_cast<std::uint64_t>(std::bit_width(slots - 1));
    add(fmt::format("gradients that {} workers compute and keep", workers), workers * kept * job_.parameters);
    const bool are_away = job_.copies_tensors || share_.ps_shards < job_.shards.size();
    add(are_away ? "their copies of the parameters, and those that come in"
                 : "their copies of the parameters",
        workers * versions_kept * job_.parameters * (are_away ? 2 : 1));
    add(job_.on_gpus ? "outputs that GPUs tell, and layers that the host computes" : "activations",
        workers * beside_parameters());
    if (job_.on_gpus) {
      add(fmt::format("CUDA and its libraries in {} workers (an allowance)", workers),
          workers * cuda_worker_bytes);
      add("CUDA and its libraries in the agent (an allowance)", cuda_agent_bytes);
    }
    add("microbatches that are read ahead", workers * (std::uint64_t{2} * slots + 2) * job_.microbatch);
    if (job_.evaluates)
      add("evaluation: parameters and activations",
          workers * (job_.parameters + beside_parameters() + 2 * job_.microbatch));
  }

  /// Of a microbatch, in the memory of the host.
  std::uint64_t beside_parameters() const { return job_.on_gpus ? job_.beside_gpu : job_.activations; }

  void add_processes() {
    add(fmt::format("processes: root, coordinator, {} PS shards, {} workers{}", share_.ps_shards,
                    share_.workers,
                    share_.keepers > 0 ? fmt::format(", {} keepers of copies", share_.keepers) : ""),
        root_bytes + coordinator_bytes + share_.ps_shards * ps_shard_bytes + share_.workers * worker_bytes +
            share_.keepers * keeper_bytes);
  }

  const job_sizes& job_;
  const pod_share& share_;
  std::uint64_t shards_;
  std::vector<pod_need> rows_;
};

/// Of one store, at its longest: what follows the second newest snapshot.
std::uint64_t log_bytes(const job_sizes& job) {
  const auto record = static_cast<double>(largest(job.shards)) + record_head_bytes;
  const auto a_minute = std::min(log_bytes_per_s, steps_per_s_max * record) * log_age_s;
  const auto inline_max = persistence::shard_store_options{}.inline_bytes_max; // others are in segments
  const auto one = std::min(replay_bytes_per_s * job.max_recovery_s / 2, a_minute);
  return 2 * static_cast<std::uint64_t>(one) + (largest(job.shards) > inline_max ? spare_segment_bytes : 0);
}

/// Of all stores, each as its equal part of durability.disk_quota has to let the largest be.
std::uint64_t quota_needed(const job_sizes& job) {
  const auto snapshots = snapshots_kept * largest(job.shards) * (1 + job.state_planes);
  const auto store = snapshots + database_bytes + (job.logs_steps ? log_bytes(job) : 0);
  return job.shards.size() * store;
}

/// While they are archived: beyond the quota.
std::uint64_t archived_bytes(const job_sizes& job) {
  if (!job.archives) return 0;
  return (job.evaluates ? snapshots_archived : 1) * job.parameters * (1 + job.state_planes);
}

/// The disk of which quota_on_disk() is enough.
std::uint64_t disk_for_quota(const job_sizes& job) {
  const auto needed = quota_needed(job);
  return std::max((needed * 5 + 3) / 4, needed + folder_bytes + archived_bytes(job));
}

/// The run folder of the control pod gets the stores of all PS shards when the job is complete.
std::vector<pod_need> disk_rows(const job_sizes& job) {
  const auto stores = static_cast<std::uint64_t>(job.shards.size());
  const auto snapshot = job.parameters * (1 + job.state_planes);
  std::vector<pod_need> rows;
  const auto add = [&rows](std::string what, std::uint64_t bytes) {
    if (bytes > 0) rows.push_back({std::move(what), bytes});
  };
  if (job.disk_quota) {
    add("stores, as durability.disk_quota lets them be", *job.disk_quota);
  } else {
    add(fmt::format("{} snapshots of parameters and optimizer state", snapshots_kept),
        snapshots_kept * snapshot);
    if (job.logs_steps) add(fmt::format("logs of steps of {} stores", stores), stores * log_bytes(job));
    add(fmt::format("databases of {} stores", stores), stores * database_bytes);
  }
  add("logs of roles, journal, report", folder_bytes);
  add("snapshots that are being archived", archived_bytes(job));
  const auto sum = sum_of(rows);
  if (!job.disk_quota) add("left free: durability.disk_quota is 0.8 of it", disk_for_quota(job) - sum);
  return rows;
}

} // namespace

result<job_sizes> sizes_of(const spec::JobSpec& spec, std::size_t hosts) {
  const auto model = engine::model::build(spec.model());
  if (!model) return tl::unexpected(model.error());
  const auto optimizer = engine::optimizer::build(spec.train().optimizer());
  if (!optimizer) return tl::unexpected(optimizer.error());
  const auto& cluster = spec.cluster();
  const auto batch = static_cast<std::uint64_t>(spec.train().microbatch_size());
  const auto log = job::durability_log_of(spec);
  const auto record = *element_count((*model)->input_shape()) + (*model)->loss().target_values();
  const engine::network network{*model, static_cast<int>(cluster.threads_per_worker())};
  job_sizes sizes{.parameters = floats((*model)->layout().flat_size()),
                  .shards = {},
                  .state_planes = optimizer->state_floats_per_parameter(),
                  .activations = batch * floats(network.activation_floats() + working_floats(**model)),
                  .microbatch = batch * floats(static_cast<std::uint64_t>(record)),
                  .workers = static_cast<std::uint32_t>(std::max(cluster.workers(), cluster.workers_max())),
                  .threads_per_worker = static_cast<std::uint32_t>(cluster.threads_per_worker()),
                  .slots = static_cast<std::uint32_t>(spec.train().microbatches_per_step()),
                  .copies = replicas_on(spec, hosts) - 1,
                  .copies_tensors = job::tensor_channel_of(spec) == job::tensor_channel::tcp,
                  .logs_steps = log != job::durability_log::snapshots,
                  .retains = log != job::durability_log::every_step,
                  .archives = spec.durability().has_archive(),
                  .evaluates = spec.data().has_validation(),
                  .max_recovery_s = job::parse_duration(spec.durability().max_recovery()).value_or(0.5),
                  .disk_quota = {}};
  sizes.on_gpus = job::device_of(spec) == job::device::cuda;
  sizes.beside_gpu = batch * floats(floats_beside_gpu(**model));
  const auto shards = static_cast<std::uint32_t>(cluster.ps_shards());
  for (const auto& range : engine::place_blocks((*model)->layout(), shards))
    sizes.shards.push_back(floats(range.size));
  if (const auto quota = job::parse_bytes(spec.durability().disk_quota()).value_or(0); quota > 0)
    sizes.disk_quota = quota;
  return sizes;
}

std::uint32_t pods_at_least(std::uint32_t hosts_min, bool spares_control) {
  const auto away = spares_control ? 2U : 1U;
  return hosts_min > away ? hosts_min - away : 1;
}

/// A worker goes where the fewest threads of roles are, on GPUs where the fewest workers are, a PS
/// shard where the fewest of its kind
/// are, or, where it has a copy, to that. Copies gather where no PS shard was lost.
pod_share largest_share(const job_sizes& job, std::uint32_t pods) {
  DLRUN_CHECK(pods > 0 && job.workers > 0, "{} workers on {} pods", job.workers, pods);
  const auto shards = static_cast<std::uint32_t>(job.shards.size());
  const auto even = rounded_up(shards, pods);
  const auto threads = job.on_gpus ? 1 : job.threads_per_worker;
  const auto before = std::uint64_t{job.workers - 1} * threads + (job.on_gpus ? 0 : shards);
  const auto computing = std::max(1U, pods - std::min(pods, job.pods_without_gpus));
  const auto workers = before / (std::uint64_t{computing} * threads) + 1;
  return {.workers = static_cast<std::uint32_t>(std::min<std::uint64_t>(job.workers, workers)),
          .ps_shards = std::min(shards, even * (1 + job.copies)),
          .keepers = pods == 1 || job.copies == 0 ? 0 : shards};
}

pod_needs needs_of_pod(const job_sizes& job, std::uint32_t pods, std::uint64_t data) {
  return {memory_rows{job, largest_share(job, pods), data}.take(), disk_rows(job)};
}

pod_needs needs_of_ps_pod(const job_sizes& job, std::uint64_t data) {
  const auto shards = static_cast<std::uint32_t>(job.shards.size());
  const pod_share all{.workers = 0, .ps_shards = shards, .keepers = job.copies == 0 ? 0 : shards};
  return {memory_rows{job, all, data}.take(), disk_rows(job)};
}

std::uint64_t quota_on_disk(const job_sizes& job, std::uint64_t disk) {
  const auto beside = folder_bytes + archived_bytes(job);
  return std::min(disk - disk / 5, disk - std::min(disk, beside));
}

std::uint64_t sum_of(const std::vector<pod_need>& rows) {
  return std::transform_reduce(rows.begin(), rows.end(), std::uint64_t{0}, std::plus{},
                               [](const pod_need& one) { return one.bytes; });
}

} // namespace dlrun::runtime
