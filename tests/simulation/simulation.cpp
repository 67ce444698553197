#include "tests/simulation/simulation.hpp"

#include "tests/simulation/agent_process.hpp"
#include "tests/simulation/coordinator_process.hpp"
#include "tests/simulation/faults.hpp"
#include "tests/simulation/ps_shard_process.hpp"
#include "tests/simulation/worker_process.hpp"
#include "tests/simulation/world.hpp"

namespace dlrun::simulation {
namespace {

void describe(world& where) {
  const auto& plan = where.plan();
  const auto& job = plan.job;
  where.say(nullptr, "{} PS shards, {} workers, {} slots, {} steps, B = {}, {}", job.ps_shards, plan.workers,
            job.slots, job.steps, plan.bound, plan.logs ? "with a log" : "without a log");
  where.say(nullptr, "loss {:.2f}, duplication {:.2f}, slow {:.2f}, {} faults until {} ms", plan.loss,
            plan.duplication, plan.slowness, plan.faults.size(), plan.calm.count() / 1000);
}

void check_failed_as_promised(world& where) {
  const auto& ended = *where.ended();
  if (ended.outcome != protocol::job_outcome::failed || ended.reason.find("ps_shard") == std::string::npos)
    where.broken("I6", "a PS shard without a log was lost, and the job ended with: {}", ended.reason);
}

/// I1, from what the shards say of themselves; each start speaks of the steps that it applied.
void check_ledger(world& where, const ps_shard_process& shard) {
  std::uint64_t records = 0;
  for (step_id step{shard.restored().value}; step.value < where.job().steps; ++step.value)
    records += where.job().records_of(step);
  const auto& totals = shard.core().applied().totals();
  if (totals.samples_applied != records || totals.samples_missing != 0 || totals.samples_duplicated != 0)
    where.broken("I1", "{} counts {} of {} samples, {} missing, {} twice", shard.name(),
                 totals.samples_applied, records, totals.samples_missing, totals.samples_duplicated);
  if (totals.steps_redone != 0)
    where.broken("waste", "{} has redone {} steps", shard.name(), totals.steps_redone);
  if (shard.values_held() != 0)
    where.broken("values", "{} still holds {} gradients", shard.name(), shard.values_held());
}

void check_completed(world& where, const coordinator_process& coordinator) {
  const auto& ended = *where.ended();
  const version_id last{where.job().steps};
  if (ended.outcome != protocol::job_outcome::completed)
    where.broken("I6", "the job ended with: {}", ended.reason);
  std::string digests;
  for (std::uint32_t shard = 0; shard < where.job().ps_shards; ++shard) {
    const auto content = where.truth().parameters(last, {shard});
    for (int i = 0; i < 32; ++i) digests += static_cast<char>((content >> (8 * (i % 8))) & 0xff);
    if (where.plan().logs && where.disk_of({shard}).roots.size() != last.value)
      where.broken("I6", "the job is over, but ps_shard {} has committed {} steps", shard,
                   where.disk_of({shard}).roots.size());
    if (const auto* running = where.newest(protocol::ps_shard_role({shard})))
      check_ledger(where, *static_cast<const ps_shard_process*>(running));
  }
  if (coordinator.core().digests() != digests)
    where.broken("I2", "the digests are not those of the undisturbed run");
  if (!where.plan().evaluates) return;
  const auto& evaluation = coordinator.core().evaluation();
  if (!evaluation || evaluation->loss_sum_bits != where.truth().whole_parameters(last))
    where.broken("I2", "the evaluation is missing or of other parameters");
}

} // namespace

run_outcome run_seed(const run_options& options) {
  world where(draw_scenario(options.seed), options.bug, options.trace);
  run_outcome outcome;
  try {
    describe(where);
    auto& coordinator = where.start<coordinator_process>(protocol::fence{{1}, 0});
    auto& agent = where.start<agent_process>();
    fault_injector faults(where, agent, coordinator);
    faults.plan();
    where.run();
    if (where.ended()->outcome != protocol::job_outcome::completed && faults.ended_the_job())
      check_failed_as_promised(where);
    else
      check_completed(where, coordinator);
  } catch (const violation& what) {
    outcome.broken = what.what();
    where.say(nullptr, "BROKEN {}", outcome.broken);
  }
  outcome.events = where.events;
  return outcome;
}

} // namespace dlrun::simulation
