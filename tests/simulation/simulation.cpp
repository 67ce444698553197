#include "tests/simulation/simulation.hpp"

#include "tests/simulation/agent_process.hpp"
#include "tests/simulation/checks.hpp"
#include "tests/simulation/faults.hpp"
#include "tests/simulation/world.hpp"

namespace dlrun::simulation {
namespace {

std::string_view name_of(protocol::durability mode) {
  switch (mode) {
  case protocol::durability::off: return "nothing durable";
  case protocol::durability::snapshots: return "snapshots";
  case protocol::durability::every_step: return "a log";
  }
  return "unknown";
}

void describe(world& where) {
  const auto& plan = where.plan();
  const auto& job = plan.job;
  where.say(nullptr, "{} PS shards{}, {} workers, {} slots, {} steps, B = {}, {}{}", job.ps_shards,
            job.couples ? " with norms" : "", plan.workers, job.slots, job.steps, plan.bound,
            name_of(plan.durability), plan.syncs_each_step ? ", each step synced" : "");
  where.say(nullptr, "loss {:.2f}, duplication {:.2f}, slow {:.2f}, {} faults until {} ms", plan.loss,
            plan.duplication, plan.slowness, plan.faults.size(), plan.calm.count() / 1000);
  if (plan.hosts.are_several())
    where.say(nullptr, "{} hosts, {} faults of theirs, late orders {:.2f}", plan.hosts.count,
              plan.hosts.faults.size(), plan.hosts.late_orders);
}

} // namespace

run_outcome run_seed(const run_options& options) {
  const auto plan = options.hosts ? draw_scenario_of_hosts(options.seed) : draw_scenario(options.seed);
  world where(plan, options.bug, options.trace);
  run_outcome outcome;
  try {
    describe(where);
    fault_injector faults(where);
    faults.start();
    faults.plan();
    where.run();
    if (where.end().ended->outcome != protocol::job_outcome::completed && faults.ended_the_job())
      check_failed_as_promised(where);
    else
      check_completed(where);
  } catch (const violation& what) {
    outcome.broken = what.what();
    where.say(nullptr, "BROKEN {}", outcome.broken);
  }
  outcome.events = where.events;
  outcome.faults = where.plan().faults.size() + where.plan().hosts.faults.size();
  outcome.ps_shard_restarted = where.happened().ps_shard_lost;
  outcome.rewinds = static_cast<std::uint64_t>(where.happened().rewinds);
  outcome.steps_redone = where.happened().steps_redone;
  return outcome;
}

} // namespace dlrun::simulation
