#include "tests/simulation/scenario.hpp"

#include <algorithm>

namespace dlrun::simulation {

using protocol::duration;

std::string_view to_string(fault_kind kind) {
  switch (kind) {
  case fault_kind::kill_worker: return "kill a worker";
  case fault_kind::kill_all_workers: return "kill all workers";
  case fault_kind::kill_ps_shard: return "kill a PS shard";
  case fault_kind::kill_host: return "kill a worker and a PS shard";
  case fault_kind::zombie_worker: return "take a frozen worker for dead";
  case fault_kind::zombie_ps_shard: return "take a frozen PS shard for dead";
  case fault_kind::freeze_worker: return "freeze a worker";
  case fault_kind::freeze_ps_shard: return "freeze a PS shard";
  case fault_kind::freeze_coordinator: return "freeze the coordinator";
  case fault_kind::restart_dispatcher: return "restart the dispatcher";
  case fault_kind::partition: return "partition";
  }
  return "unknown";
}

namespace {

/// With probability `on` a rate in [low, high), else 0.
double rate(random_source& random, double on, double low, double high) {
  return random.chance(on) ? random.between(low, high) : 0;
}

void draw_job(scenario& plan, random_source& random) {
  auto& job = plan.job;
  job.ps_shards = random.pick({1U, 2U, 2U, 3U});
  job.slots = random.pick({1U, 2U, 3U, 4U, 4U, 6U, 7U, 8U});
  job.steps = random.pick<std::uint64_t>({4, 8, 16, 30, 50});
  job.steps_per_epoch = 1 + random.below(5);
  job.slots_of_last = 1 + static_cast<std::uint32_t>(random.below(job.slots));
  job.records_of_last = 1 + random.below(job_shape::records_per_slot);
  plan.workers = random.pick({1U, 2U, 2U, 3U, 4U, 5U});
  plan.bound = random.pick({1U, 1U, 2U, 3U});
  plan.logs = random.chance(0.7);
  plan.evaluates = random.chance(0.7);
}

void draw_speeds(scenario& plan, random_source& random) {
  plan.loss = rate(random, 0.5, 0.01, 0.2);
  plan.duplication = rate(random, 0.4, 0.01, 0.2);
  plan.slowness = rate(random, 0.5, 0.01, 0.15);
  plan.slot_ms = random.pick({0.5, 2.0, 5.0});
  plan.apply_ms = random.pick({0.2, 1.0, 4.0});
  plan.log_ms = random.pick({1.0, 5.0, 20.0, 60.0});
  plan.start_ms = random.pick({3.0, 10.0, 40.0});
  for (std::uint32_t i = 0; i < plan.workers; ++i)
    plan.slowness_of_worker.push_back(random.chance(0.2) ? random.between(2, 20) : 1);
  plan.period = std::chrono::milliseconds(random.pick({8, 12, 20}));
  plan.silent_after = plan.period * 6;
}

void draw_faults(scenario& plan, random_source& random) {
  plan.calm = random.milliseconds(40, 240);
  plan.limit = plan.calm + std::chrono::seconds(6);
  const auto add = [&](fault_kind kind, double on, double low, double high) {
    const auto times = static_cast<int>(rate(random, on, low, high) + random.real() * 0.99);
    for (int i = 0; i < times; ++i)
      plan.faults.push_back({duration(static_cast<std::int64_t>(plan.calm.count() * random.real())), kind});
  };
  add(fault_kind::kill_worker, 0.6, 0.5, 4);
  add(fault_kind::kill_all_workers, 0.2, 0.3, 1.5);
  add(fault_kind::zombie_worker, 0.3, 0.5, 2);
  add(fault_kind::freeze_worker, 0.3, 0.5, 3);
  add(fault_kind::freeze_ps_shard, 0.2, 0.5, 2);
  add(fault_kind::freeze_coordinator, 0.3, 0.5, 2);
  add(fault_kind::restart_dispatcher, 0.3, 0.5, 2);
  add(fault_kind::partition, 0.3, 0.5, 2);
  const bool spares_shards = !plan.logs && !random.chance(0.1); // without a log their death ends the job
  if (!spares_shards) {
    add(fault_kind::kill_ps_shard, 0.6, 0.5, 4);
    add(fault_kind::zombie_ps_shard, 0.3, 0.5, 2);
    add(fault_kind::kill_host, 0.3, 0.5, 2);
  }
  std::stable_sort(plan.faults.begin(), plan.faults.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
}

} // namespace

scenario draw_scenario(std::uint64_t seed) {
  random_source random(mix(seed) ^ 0x5ce7a210U);
  scenario plan;
  plan.seed = seed;
  draw_job(plan, random);
  draw_speeds(plan, random);
  draw_faults(plan, random);
  return plan;
}

} // namespace dlrun::simulation
