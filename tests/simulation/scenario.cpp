#include "tests/simulation/scenario.hpp"

#include <algorithm>

namespace dlrun::simulation {

using protocol::durability;
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
  case fault_kind::scale_workers: return "scale the workers";
  case fault_kind::preempt_worker: return "preempt a worker";
  case fault_kind::kill_coordinator: return "kill the coordinator";
  case fault_kind::zombie_coordinator: return "take a frozen coordinator for dead";
  case fault_kind::depose_coordinator: return "take a live coordinator for dead";
  case fault_kind::burst: return "burst";
  case fault_kind::cut_power: return "cut the power";
  case fault_kind::lose_journal: return "lose the journal";
  case fault_kind::lose_disk: return "lose a disk";
  case fault_kind::fill_disk: return "fill a disk";
  case fault_kind::go_back: return "go back on purpose";
  case fault_kind::put_back_store: return "copy a store, to put it back later";
  case fault_kind::put_back_journal: return "copy the journal, to put it back later";
  case fault_kind::move_ps_shard: return "move a PS shard";
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
  plan.evaluates = random.chance(0.7);
}

void draw_durability(scenario& plan, random_source& random) {
  const auto kind = random.real();
  plan.durability = kind < 0.2    ? durability::off
                    : kind < 0.45 ? durability::snapshots
                                  : durability::every_step;
  plan.syncs_each_step = random.chance(0.4);
  plan.max_recovery = random.pick({duration(10'000), duration(40'000), duration(150'000)});
  if (plan.durability == durability::off) return;
  plan.job.couples = plan.job.ps_shards > 1 && random.chance(0.35);
  if (random.chance(0.4)) plan.evaluations.insert({1 + random.below(plan.job.steps)});
  if (random.chance(0.15)) plan.evaluations.insert({1 + random.below(plan.job.steps)});
  if (random.chance(0.08)) {
    const step_id step{random.below(plan.job.steps)};
    plan.poison.push_back({step, {static_cast<std::uint32_t>(random.below(plan.job.slots_of(step)))}, {0}});
  }
  plan.damage = rate(random, 0.2, 0.1, 0.5);
}

slot_id draw_slot(const scenario& plan, random_source& random, step_id step) {
  return {static_cast<std::uint32_t>(random.below(plan.job.slots_of(step)))};
}

/// From numbers of its own: what is drawn of the rest stays what it was. Often near one another.
void draw_poison(scenario& plan) {
  random_source random(mix(plan.seed) ^ 0x9015090150U);
  if (plan.durability == durability::off) return;
  if (random.chance(0.06)) {
    const step_id step{random.below(plan.job.steps)};
    plan.hunted = {step, draw_slot(plan, random, step), 3 + static_cast<int>(random.below(6))};
  }
  if (plan.poison.empty() && !random.chance(0.06)) return;
  plan.records_min = random.pick<std::uint64_t>({1, 1, 2});
  for (auto more = random.below(3); more > 0; --more) {
    const step_id near =
        plan.poison.empty() ? step_id{random.below(plan.job.steps)} : plan.poison.back().step;
    const step_id step = random.chance(0.5) ? near : step_id{random.below(plan.job.steps)};
    plan.poison.push_back({step, draw_slot(plan, random, step), {}});
  }
  for (auto& one : plan.poison) {
    const auto records = plan.job.records_of(one.step, one.slot);
    one.hangs = random.chance(0.3);
    one.records = {static_cast<std::uint32_t>(random.below(records))};
    if (random.chance(0.3)) one.records.insert(static_cast<std::uint32_t>(random.below(records)));
  }
}

/// From numbers of its own too.
void draw_evaluation(scenario& plan) {
  random_source random(mix(plan.seed) ^ 0xe7a1e7a1U);
  if (plan.durability == durability::off || !random.chance(0.25)) return;
  const auto every = 1 + random.below(4);
  for (auto version = every; version < plan.job.steps; version += every) plan.evaluations.insert({version});
  plan.ahead_max = random.below(3);
  plan.keeps_best = random.chance(0.7);
  if (random.chance(0.5)) plan.patience = 1 + random.below(3);
}

void draw_speeds(scenario& plan, random_source& random) {
  plan.loss = rate(random, 0.5, 0.01, 0.2);
  plan.duplication = rate(random, 0.4, 0.01, 0.2);
  plan.slowness = rate(random, 0.5, 0.01, 0.15);
  plan.slot_ms = random.pick({0.5, 2.0, 5.0});
  plan.apply_ms = random.pick({0.2, 1.0, 4.0});
  plan.log_ms = random.pick({1.0, 5.0, 20.0, 60.0});
  plan.snapshot_ms = random.pick({2.0, 10.0, 50.0});
  plan.journal_ms = random.pick({0.5, 3.0, 10.0});
  plan.start_ms = random.pick({3.0, 10.0, 40.0});
  for (std::uint32_t i = 0; i < plan.workers; ++i)
    plan.slowness_of_worker.push_back(random.chance(0.2) ? random.between(2, 20) : 1);
  plan.period = std::chrono::milliseconds(random.pick({8, 12, 20}));
  plan.silent_after = plan.period * 6;
}

class fault_plan {
public:
  fault_plan(scenario& plan, random_source& random)
      : plan_(plan)
      , random_(random) {}

  void add(fault_kind kind, double on, double low, double high) {
    const auto times = static_cast<int>(rate(random_, on, low, high) + random_.real() * 0.99);
    for (int i = 0; i < times; ++i)
      plan_.faults.push_back(
          {duration(static_cast<std::int64_t>(static_cast<double>(plan_.calm.count()) * random_.real())),
           kind});
  }
  void rarely(fault_kind kind, double probability) {
    if (random_.chance(probability)) add(kind, 1, 1, 1);
  }

private:
  scenario& plan_;
  random_source& random_;
};

void draw_durable_faults(const scenario& plan, fault_plan& faults, random_source& random) {
  if (plan.durability == durability::off) return;
  faults.add(fault_kind::kill_coordinator, 0.45, 0.5, 3);
  faults.add(fault_kind::zombie_coordinator, 0.3, 0.5, 2);
  faults.add(fault_kind::burst, 0.3, 0.5, 2);
  faults.add(fault_kind::cut_power, 0.25, 0.3, 1.5);
  faults.add(fault_kind::fill_disk, 0.2, 0.5, 2);
  faults.rarely(fault_kind::lose_disk, 0.04);
  faults.rarely(fault_kind::lose_journal, 0.05);
  if (random.chance(0.12)) faults.add(fault_kind::go_back, 1, 1, 3);
}

/// Shards far apart: a slow log, PS shards and workers die together.
void stress(scenario& plan, random_source& random) {
  plan.durability = durability::every_step;
  plan.bound = random.pick({2U, 3U, 4U});
  plan.log_ms = random.pick({60.0, 150.0, 300.0});
  plan.calm = random.milliseconds(150, 400);
}

void sort_faults(scenario& plan) {
  std::stable_sort(plan.faults.begin(), plan.faults.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
}

void draw_faults(scenario& plan, random_source& random) {
  plan.calm = random.milliseconds(40, 240);
  const bool stressed = plan.durability != durability::off && random.chance(0.1);
  if (stressed) stress(plan, random);
  plan.limit = plan.calm + std::chrono::seconds(stressed ? 30 : 10);
  fault_plan faults(plan, random);
  faults.add(fault_kind::kill_worker, 0.6, 0.5, 4);
  faults.add(fault_kind::kill_all_workers, 0.2, 0.3, 1.5);
  faults.add(fault_kind::zombie_worker, 0.3, 0.5, 2);
  faults.add(fault_kind::freeze_worker, 0.3, 0.5, 3);
  faults.add(fault_kind::freeze_ps_shard, 0.2, 0.5, 2);
  faults.add(fault_kind::freeze_coordinator, 0.3, 0.5, 2);
  faults.add(fault_kind::restart_dispatcher, 0.3, 0.5, 2);
  faults.add(fault_kind::partition, 0.3, 0.5, 2);
  const bool is_durable = plan.durability != durability::off;
  if (is_durable || random.chance(0.1)) { // else their death ends the job
    faults.add(fault_kind::kill_ps_shard, 0.6, 0.5, 4);
    faults.add(fault_kind::zombie_ps_shard, 0.3, 0.5, 2);
    faults.add(fault_kind::kill_host, stressed ? 1 : 0.3, 0.5, 2);
  }
  draw_durable_faults(plan, faults, random);
  sort_faults(plan);
}

/// From numbers of its own too: what of the faults comes at the same moment stays in its order.
void draw_remote_journal(scenario& plan) {
  random_source random(mix(plan.seed) ^ 0x70042128U);
  if (plan.durability == durability::off || !random.chance(0.3)) return;
  plan.journal_is_remote = true;
  plan.journal_silence = rate(random, 0.5, 0.02, 0.15);
  fault_plan(plan, random).add(fault_kind::depose_coordinator, 0.6, 0.5, 3);
  sort_faults(plan);
}

/// From numbers of its own too.
void draw_scaling(scenario& plan) {
  random_source random(mix(plan.seed) ^ 0x5ca1e5ca1eU);
  plan.workers_max = plan.workers;
  plan.scales = random.chance(0.3);
  if (!plan.scales) return;
  plan.workers_max += static_cast<std::uint32_t>(random.below(4));
  while (plan.slowness_of_worker.size() < plan.workers_max)
    plan.slowness_of_worker.push_back(random.chance(0.2) ? random.between(2, 20) : 1);
  fault_plan faults(plan, random);
  faults.add(fault_kind::scale_workers, 0.8, 1, 6);
  faults.add(fault_kind::preempt_worker, 0.6, 1, 4);
  sort_faults(plan);
}

/// From numbers of its own too. Somebody else is always there: the first worker stays.
void draw_stuck(scenario& plan) {
  random_source random(mix(plan.seed) ^ 0x57c057c0U);
  const auto most = plan.scales ? plan.workers_max : plan.workers;
  if (most > 1 && random.chance(0.15))
    plan.stuck = worker_id{1 + static_cast<std::uint32_t>(random.below(most - 1))};
}

/// From numbers of its own too.
void draw_put_back(scenario& plan) {
  random_source random(mix(plan.seed) ^ 0x9b7bac4U);
  if (plan.durability == durability::off || !random.chance(0.15)) return;
  fault_plan(plan, random).add(fault_kind::put_back_store, 1, 1, 2);
  sort_faults(plan);
}

/// From numbers of its own too.
void draw_older_journal(scenario& plan) {
  random_source random(mix(plan.seed) ^ 0x01de5709U);
  if (plan.durability == durability::off || !random.chance(0.12)) return;
  fault_plan(plan, random).add(fault_kind::put_back_journal, 1, 1, 2);
  sort_faults(plan);
}

/// From numbers of its own too. PS shards die often, and of a part of those jobs nothing else goes
/// wrong: then none of them may go back (R36).
void draw_shard_deaths(scenario& plan) {
  random_source random(mix(plan.seed) ^ 0x3e3d0a7eU);
  if (plan.durability != durability::snapshots || !random.chance(0.6)) return;
  if (random.chance(0.5)) {
    plan.faults.clear();
    plan.poison.clear();
    plan.loss = plan.damage = 0;
  }
  fault_plan(plan, random).add(fault_kind::kill_ps_shard, 1, 2, 8);
  sort_faults(plan);
}

/// From numbers of its own too. Of a part of those jobs nothing else goes wrong: then none of them
/// may go back (R37).
void draw_moves(scenario& plan) {
  random_source random(mix(plan.seed) ^ 0x30fe30feU);
  if (plan.durability != durability::snapshots || !random.chance(0.4)) return;
  if (random.chance(0.6)) {
    plan.faults.clear();
    plan.poison.clear();
    plan.loss = plan.damage = 0;
  }
  fault_plan(plan, random).add(fault_kind::move_ps_shard, 1, 1, 6);
  sort_faults(plan);
}

} // namespace

scenario draw_scenario(std::uint64_t seed) {
  random_source random(mix(seed) ^ 0x5ce7a210U);
  scenario plan;
  plan.seed = seed;
  draw_job(plan, random);
  draw_durability(plan, random);
  draw_speeds(plan, random);
  draw_faults(plan, random);
  draw_scaling(plan);
  draw_evaluation(plan);
  draw_poison(plan);
  draw_remote_journal(plan);
  draw_stuck(plan);
  draw_put_back(plan);
  draw_shard_deaths(plan);
  draw_moves(plan);
  draw_older_journal(plan);
  return plan;
}

scenario draw_scenario_of_hosts(std::uint64_t seed) {
  auto plan = draw_scenario(seed);
  if (!plan.is_durable()) plan.durability = durability::every_step;
  std::erase_if(plan.faults, [](const auto& one) {
    return one.kind == fault_kind::lose_journal || one.kind == fault_kind::put_back_store;
  });
  random_source random(mix(seed) ^ 0x4057a4eaU);
  if (random.chance(0.7)) { // after the start, of which each part takes its time
    const auto later = random.milliseconds(30, 120);
    for (auto& fault : plan.faults) fault.at += later;
    plan.calm += later;
    plan.limit += later;
  }
  plan.hosts = draw_hosts(seed, plan.calm, plan.journal_is_remote);
  return plan;
}

} // namespace dlrun::simulation
