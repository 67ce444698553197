// What a pod needs; that it is enough is measured by tests/integration/pod_memory_test.py.
#include "runtime/pod_needs.hpp"

#include "actors/agent/placement.hpp"
#include "tests/job/spec_text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

namespace dlrun::runtime {
namespace {

using testing::Contains;
using testing::Field;
using testing::HasSubstr;

constexpr std::uint64_t mib = 1 << 20;

/// A job of a million parameters.
job_sizes large_job() {
  return {.parameters = 4 * mib,
          .shards = {2 * mib, 2 * mib},
          .state_planes = 1,
          .activations = mib,
          .microbatch = mib / 8,
          .workers = 4,
          .slots = 8,
          .logs_steps = true,
          .retains = false};
}

std::uint64_t memory_of(const job_sizes& job, std::uint32_t pods = 1, std::uint64_t data = 0) {
  return sum_of(needs_of_pod(job, pods, data).memory);
}

std::uint64_t row(const std::vector<pod_need>& rows, const std::string& what) {
  const auto found =
      std::ranges::find_if(rows, [&](const auto& one) { return one.what.find(what) != one.what.npos; });
  return found == rows.end() ? 0 : found->bytes;
}

TEST(pods, of_a_job_are_one_fewer_than_it_begins_with) {
  EXPECT_EQ(pods_at_least(1), 1U);
  EXPECT_EQ(pods_at_least(2), 1U);
  EXPECT_EQ(pods_at_least(4), 3U);
  for (const auto& [hosts_min, pods] : {std::pair{2U, 1U}, {3U, 1U}, {4U, 2U}})
    EXPECT_EQ(pods_at_least(hosts_min, true), pods) << "the control pod takes nothing";
}

TEST(largest_share, of_one_pod_is_everything_but_copies) {
  auto job = large_job();
  job.copies = 1;
  const auto share = largest_share(job, 1);
  EXPECT_EQ(share.workers, 4U);
  EXPECT_EQ(share.ps_shards, 2U);
  EXPECT_EQ(share.keepers, 0U) << "a copy is on another host";
}

/// Roles of a job on so many hosts of equal size, as the root places them.
class placed_job {
public:
  placed_job(const job_sizes& job, std::uint32_t hosts)
      : job_{job}
      , where_{"host-000", job.threads_per_worker, false, false, job.on_gpus} {
    for (std::uint32_t host = 0; host < hosts; ++host) add(host);
    place(protocol::role_kind::ps_shard, static_cast<std::uint32_t>(job.shards.size()));
    for (const auto& keeper : keepers()) where_.put(keeper);
    place(protocol::role_kind::worker, job.workers);
  }

  /// That host is lost, and another one comes under its name when all has gone elsewhere.
  void replace(std::uint32_t host) {
    where_.remove_host(name(host));
    const auto before = where_.all();
    for (const auto& [role, where] : before) {
      if (where.host != name(host)) continue;
      if (role.kind == protocol::role_kind::ps_shard && job_.copies > 0)
        where_.put_on_copy({role.index}, copies_of({role.index}));
      else if (where_.can_put(role))
        where_.put(role);
    }
    for (const auto& keeper : keepers())
      if (where_.can_put(keeper))
        where_.put(keeper);
      else
        where_.forget(keeper);
    expect_fits();
    add(host);
  }

  void expect_fits() {
    const auto share = largest_share(job_, pods_at_least(static_cast<std::uint32_t>(most_hosts_)));
    std::map<std::string, pod_share> there;
    for (const auto& [role, where] : where_.all()) {
      if (!where_.has_host(where.host)) continue; // a keeper for which there is no host
      auto& one = there[where.host];
      one.workers += role.kind == protocol::role_kind::worker ? 1 : 0;
      one.ps_shards += role.kind == protocol::role_kind::ps_shard ? 1 : 0;
      one.keepers += role.kind == protocol::role_kind::keeper ? 1 : 0;
    }
    for (const auto& [host, one] : there) {
      EXPECT_LE(one.workers, share.workers) << host;
      EXPECT_LE(one.ps_shards, share.ps_shards) << host;
      EXPECT_LE(one.keepers, share.keepers) << host;
    }
  }
  void set_hosts(std::size_t hosts) { most_hosts_ = hosts; }

private:
  /// The first is the root's, and has no GPU.
  void add(std::uint32_t host) {
    where_.add_host(name(host), {.cpus = 4, .gpus = job_.on_gpus && host > 0 ? 2U : 0U});
  }
  static std::string name(std::uint32_t host) { return fmt::format("host-{:03}", host); }
  std::vector<protocol::role_name> keepers() const {
    return protocol::keeper_roles(static_cast<std::uint32_t>(job_.shards.size()), job_.copies);
  }
  std::vector<protocol::role_name> copies_of(ps_shard_id shard) const {
    auto all = keepers();
    std::erase_if(all, [&](const auto& keeper) { return !protocol::keeps_copy_of(keeper, shard); });
    return all;
  }
  void place(protocol::role_kind kind, std::uint32_t count) {
    for (std::uint32_t index = 0; index < count; ++index)
      if (where_.can_put({kind, index})) where_.put({kind, index});
  }

  const job_sizes& job_;
  agent::placement where_;
  std::size_t most_hosts_ = 2;
};

/// Of random jobs whose hosts are lost one after the other, but for the root's.
TEST(largest_share, is_no_less_than_what_the_placement_puts_on_a_host) {
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto up_to = [&](std::uint32_t most) { return 1 + static_cast<std::uint32_t>(random() % most); };
    const auto hosts = 1 + up_to(6);
    auto job = large_job();
    job.workers = up_to(12);
    job.threads_per_worker = up_to(3);
    job.shards.assign(up_to(6), mib);
    job.copies = hosts > 2 ? seed % (hosts - 1) : 0;
    job.on_gpus = seed % 3 == 0;
    job.pods_without_gpus = job.on_gpus ? 1 : 0;
    placed_job placed{job, hosts};
    placed.set_hosts(hosts);
    placed.expect_fits();
    for (int loss = 0; loss < 6; ++loss) placed.replace(up_to(hosts - 1));
  }
}

TEST(memory_of_a_pod, has_parameters_state_and_data_once) {
  const auto needs = needs_of_pod(large_job(), 1, 100 * mib);
  EXPECT_EQ(row(needs.memory, "parameters of 2 PS shards, 2 versions"), 8 * mib);
  EXPECT_EQ(row(needs.memory, "optimizer state, 1 version"), 4 * mib);
  EXPECT_EQ(row(needs.memory, "decoded data"), 100 * mib);
  EXPECT_EQ(row(needs.memory, "activations"), 4 * mib);
  EXPECT_EQ(row(needs.memory, "copies of gradients"), 0U);
}

TEST(memory_of_a_pod, has_two_versions_of_the_state_where_they_outlive_a_ps_shard) {
  auto job = large_job();
  job.retains = true;
  EXPECT_EQ(row(needs_of_pod(job, 1, 0).memory, "optimizer state, 2 versions"), 8 * mib);
  EXPECT_GT(memory_of(job), memory_of(large_job()));
}

/// Committed is what a worker waits for, with a log two steps longer (R10).
TEST(memory_of_a_pod, has_fewer_gradients_without_a_log) {
  auto job = large_job();
  job.logs_steps = false;
  EXPECT_LT(row(needs_of_pod(job, 1, 0).memory, "compute and keep"),
            row(needs_of_pod(large_job(), 1, 0).memory, "compute and keep"));
}

TEST(memory_of_a_pod, has_a_gradient_for_each_node_that_a_share_is_cut_into) {
  auto even = large_job(), odd = large_job();
  even.workers = 2; // [0,4) and [4,8): a node each
  odd.workers = 3;  // [0,3), [3,6) and [6,8): two nodes
  const auto of_one = [](const job_sizes& job) {
    return row(needs_of_pod(job, 1, 0).memory, "compute and keep") / job.workers / job.parameters;
  };
  EXPECT_EQ(of_one(even), 4 * 1 + 1 + 2U);
  EXPECT_EQ(of_one(odd), 4 * 2 + 1 + 2U);
}

TEST(memory_of_a_pod, grows_with_all_that_is_in_it) {
  const auto before = memory_of(large_job());
  EXPECT_EQ(memory_of(large_job(), 1, 7 * mib), before + 7 * mib);
  for (const auto& change : std::vector<void (*)(job_sizes&)>{
           [](job_sizes& job) { job.workers += 1; }, [](job_sizes& job) { job.activations *= 2; },
           [](job_sizes& job) { job.microbatch *= 2; }, [](job_sizes& job) { job.evaluates = true; },
           [](job_sizes& job) { job.state_planes += 1; }, [](job_sizes& job) { job.slots *= 16; },
           [](job_sizes& job) {
             job.parameters *= 2;
             for (auto& shard : job.shards) shard *= 2;
           }}) {
    auto changed = large_job();
    change(changed);
    EXPECT_GT(memory_of(changed), before);
  }
}

TEST(memory_of_a_pod, is_less_where_there_are_more_pods) {
  auto job = large_job();
  job.workers = 16;
  EXPECT_LT(memory_of(job, 4), memory_of(job, 1));
  EXPECT_GT(row(needs_of_pod(job, 4, 0).memory, "copies of gradients"), 0U);
}

TEST(memory_of_a_pod, has_copies_of_tensors_that_are_not_shared) {
  auto job = large_job();
  job.copies_tensors = true;
  EXPECT_GT(row(needs_of_pod(job, 1, 0).memory, "copies of gradients of 4 workers"), 0U);
  EXPECT_GT(row(needs_of_pod(job, 1, 0).memory, "and those that come in"), 0U);
}

TEST(memory_of_a_pod, whose_workers_compute_on_gpus_has_no_activations_but_what_cuda_takes_of_the_host) {
  auto job = large_job();
  job.on_gpus = true;
  job.beside_gpu = mib / 4;
  const auto rows = needs_of_pod(job, 1, 0).memory;
  EXPECT_EQ(row(rows, "activations"), 0U);
  EXPECT_EQ(row(rows, "outputs that GPUs tell"), mib);
  EXPECT_EQ(row(rows, "CUDA and its libraries in 4 workers"), 4096 * mib);
  EXPECT_EQ(row(rows, "CUDA and its libraries in the agent"), 512 * mib);
  EXPECT_EQ(row(needs_of_pod(large_job(), 1, 0).memory, "CUDA"), 0U);
}

TEST(memory_of_a_pod, that_is_for_ps_shards_has_all_of_them_their_copies_and_no_worker) {
  auto job = large_job();
  job.copies = 1;
  job.on_gpus = true;
  const auto rows = needs_of_ps_pod(job, 100 * mib).memory;
  EXPECT_EQ(row(rows, "parameters of 2 PS shards, 2 versions"), 8 * mib);
  EXPECT_GT(row(rows, "records on their way to 2 copies"), 0U);
  EXPECT_GT(row(rows, "copies of gradients of 4 workers"), 0U) << "all are on other pods";
  EXPECT_EQ(row(rows, "decoded data"), 100 * mib);
  for (const auto* of_workers : {"compute and keep", "their copies of the parameters", "CUDA", "read ahead"})
    EXPECT_EQ(row(rows, of_workers), 0U) << of_workers;
}

TEST(memory_of_a_pod, has_keepers_of_copies) {
  auto job = large_job();
  job.copies = 1;
  EXPECT_THAT(needs_of_pod(job, 2, 0).memory,
              Contains(Field(&pod_need::what, HasSubstr("keepers of copies"))));
}

TEST(disk_of_a_pod, has_three_snapshots_of_all_ps_shards_and_their_logs) {
  const auto disk = needs_of_pod(large_job(), 3, 0).disk;
  EXPECT_EQ(row(disk, "3 snapshots"), 24 * mib);
  EXPECT_GT(row(disk, "logs of steps of 2 stores"), 512 * mib);
  auto job = large_job();
  job.logs_steps = false;
  EXPECT_EQ(row(needs_of_pod(job, 3, 0).disk, "logs of steps"), 0U);
}

TEST(disk_of_a_pod, has_a_longer_log_where_a_recovery_may_take_longer) {
  auto slow = large_job(), slower = large_job();
  slow.max_recovery_s = 2;
  slower.max_recovery_s = 1e6;
  const auto log = [](const job_sizes& job) { return row(needs_of_pod(job, 1, 0).disk, "logs of steps"); };
  EXPECT_GT(log(slow), log(large_job()));
  EXPECT_LT(log(slower), std::uint64_t{200} << 30) << "a log is cut each minute";
}

TEST(disk_of_a_pod, has_what_is_kept_while_it_is_archived_beyond_a_quota) {
  auto job = large_job();
  job.archives = true;
  job.evaluates = false;
  EXPECT_EQ(row(needs_of_pod(job, 3, 0).disk, "being archived"), 8 * mib);
  job.evaluates = true;
  EXPECT_EQ(row(needs_of_pod(job, 3, 0).disk, "being archived"), 32 * mib);
  auto bound = large_job();
  job.disk_quota = bound.disk_quota = 100 * mib;
  EXPECT_EQ(sum_of(needs_of_pod(job, 1, 0).disk), sum_of(needs_of_pod(bound, 1, 0).disk) + 32 * mib);
}

TEST(disk_of_a_pod, holds_what_the_quota_of_a_job_lets_stores_have_and_a_run_folder_beside) {
  auto job = large_job();
  for (const auto quota : {100 * mib, std::uint64_t{1} << 50}) {
    job.disk_quota = quota;
    EXPECT_EQ(sum_of(needs_of_pod(job, 1, 0).disk), quota + 64 * mib);
    job.logs_steps = !job.logs_steps;
    EXPECT_EQ(sum_of(needs_of_pod(job, 1, 0).disk), quota + 64 * mib);
  }
}

/// Jobs of all shapes, from stores of a few KiB to large ones.
TEST(disk_of_a_pod, has_a_quota_of_four_fifths_in_which_each_store_has_room_and_the_rest_beside_it) {
  for (const auto& shards : {std::vector<std::uint64_t>{4096}, {8 * mib, mib}, {8 * mib, 2 * mib, 2 * mib}})
    for (const bool is_logged : {false, true})
      for (const bool is_archived : {false, true}) {
        auto job = large_job();
        job.shards = shards;
        job.parameters = std::accumulate(shards.begin(), shards.end(), std::uint64_t{0});
        job.logs_steps = is_logged;
        job.archives = is_archived;
        job.evaluates = true;
        const auto disk = needs_of_pod(job, 2, 0).disk;
        const auto sum = sum_of(disk), quota = quota_on_disk(job, sum);
        const auto state = 1 + std::uint64_t{job.state_planes};
        const auto log = row(disk, "logs of steps") / shards.size();
        EXPECT_GE(quota / shards.size(), 3 * shards.front() * state + log + 32 * mib);
        EXPECT_LE(quota, sum - sum / 5);
        EXPECT_LE(quota + 64 * mib + row(disk, "being archived"), sum);
      }
}

TEST(disk_of_a_pod, that_has_more_room_has_a_larger_quota) {
  EXPECT_EQ(quota_on_disk(large_job(), 10'000 * mib), 8'000 * mib);
  EXPECT_EQ(quota_on_disk(large_job(), 100 * mib), 36 * mib) << "the run folder has the rest";
  EXPECT_EQ(quota_on_disk(large_job(), 1), 0U);
}

TEST(sizes_of_a_job, follow_from_its_specification) {
  const auto text = test::with(test::minimal_spec, "{sgd: {lr: 0.05}}",
                               "{adam: {lr: 0.05}}, microbatch_size: 64, microbatches_per_step: 6");
  const auto spec = test::parse(text + "durability: {log: every_step, disk_quota: 1GiB, max_recovery: 2s}\n",
                                {"cluster.workers_max=5", "cluster.threads_per_worker=2"});
  ASSERT_TRUE(spec) << spec.error().message;
  const auto sizes = sizes_of(*spec, 1);
  ASSERT_TRUE(sizes) << sizes.error().message;
  EXPECT_GE(sizes->parameters, 4U * 7850);
  EXPECT_LT(sizes->parameters, 4U * 8200);
  ASSERT_EQ(sizes->shards.size(), 2U);
  EXPECT_EQ(sizes->shards[0] + sizes->shards[1], sizes->parameters);
  EXPECT_EQ(sizes->state_planes, 2U);
  EXPECT_EQ(sizes->microbatch, 64U * 4 * 785);
  EXPECT_GE(sizes->activations, 64U * 4 * 10 * 2);
  EXPECT_EQ(sizes->workers, 5U);
  EXPECT_EQ(sizes->threads_per_worker, 2U);
  EXPECT_EQ(sizes->slots, 6U);
  EXPECT_EQ(sizes->copies, 0U);
  EXPECT_TRUE(sizes->logs_steps);
  EXPECT_FALSE(sizes->retains);
  EXPECT_FALSE(sizes->evaluates);
  EXPECT_EQ(sizes->max_recovery_s, 2);
  EXPECT_EQ(sizes->disk_quota, std::uint64_t{1} << 30);
}

TEST(sizes_of_a_job, count_the_copies_that_a_job_of_as_many_hosts_has) {
  const auto copies = [](std::size_t hosts, const std::vector<std::string>& overrides) {
    const auto spec = test::parse(test::minimal_spec, overrides);
    EXPECT_TRUE(spec) << (spec ? "" : spec.error().message);
    const auto sizes = sizes_of(*spec, hosts);
    EXPECT_TRUE(sizes) << (sizes ? "" : sizes.error().message);
    return sizes->copies;
  };
  EXPECT_EQ(copies(1, {}), 0U);
  EXPECT_EQ(copies(2, {}), 1U);
  EXPECT_EQ(copies(2, {"durability.replicas=1"}), 0U);
  EXPECT_EQ(copies(2, {"durability.replicas=2"}), 1U);
  EXPECT_EQ(copies(2, {"cluster.determinism=relaxed"}), 0U);
}

TEST(sizes_of_a_job, on_gpus_have_the_outputs_that_are_told_to_the_host) {
  const auto sizes = [](const std::string& device) {
    const auto spec =
        test::parse(test::minimal_spec, {"cluster.device=" + device, "train.microbatch_size=64"});
    EXPECT_TRUE(spec) << (spec ? "" : spec.error().message);
    return sizes_of(*spec, 2).value();
  };
  EXPECT_FALSE(sizes("cpu").on_gpus);
  EXPECT_FALSE(sizes("auto").on_gpus);
  EXPECT_TRUE(sizes("cuda").on_gpus);
  EXPECT_EQ(sizes("cuda").beside_gpu, 64U * 4 * 10) << "flatten and linear are the GPU's";
}

TEST(sizes_of_a_job, take_both_for_what_is_not_decided_yet) {
  const auto spec = test::parse(test::minimal_spec);
  ASSERT_TRUE(spec) << spec.error().message;
  const auto sizes = sizes_of(*spec, 1);
  ASSERT_TRUE(sizes) << sizes.error().message;
  EXPECT_TRUE(sizes->logs_steps);
  EXPECT_TRUE(sizes->retains);
  EXPECT_EQ(sizes->disk_quota, std::nullopt);
}

} // namespace
} // namespace dlrun::runtime
