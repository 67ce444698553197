#include "tests/simulation/dispatcher_process.hpp"

#include "actors/common/action_handlers.hpp"
#include "tests/simulation/coordinator_process.hpp"
#include "tests/simulation/world.hpp"

namespace dlrun::simulation {
namespace {

data_dispatcher::evaluation_rules evaluation_rules_of(const scenario& plan) {
  data_dispatcher::evaluation_rules rules;
  rules.versions = plan.evaluations;
  rules.ahead_max = plan.ahead_max;
  const protocol::watched_metric loss{[](const protocol::evaluated& one) { return loss_of(one); }, false};
  if (plan.patience > 0) rules.stopping = data_dispatcher::stopping_rule{loss, plan.patience, 0};
  if (plan.keeps_best) rules.best = loss;
  return rules;
}

data_dispatcher::data_dispatcher_core_config dispatcher_config(world& where, const coordinator_journal& found,
                                                               incarnation self) {
  data_dispatcher::data_dispatcher_core_config config;
  config.self = self;
  config.workers = where.plan().workers;
  config.ps_shards = where.job().ps_shards;
  config.steps = where.job().steps;
  config.microbatches_per_step = where.job().slots;
  config.evaluates = where.plan().evaluates;
  config.silent_after = where.plan().silent_after;
  config.repeat_after = where.plan().period;
  config.retry_idle_after = where.plan().period * 10;
  config.durability = where.plan().durability;
  config.sizes.slots_of = [job = where.job()](step_id step) { return job.slots_of(step); };
  config.sizes.records_of = [job = where.job()](step_id step, slot_id slot) {
    return job.records_of(step, slot);
  };
  config.sizes.records_min = where.plan().records_min;
  config.couples = where.job().couples;
  config.evaluations = evaluation_rules_of(where.plan());
  config.max_recovery = where.plan().max_recovery;
  config.course = found.course;
  config.course.lost = found.course_is_lost;
  config.course.ended = found.ended.has_value();
  config.bug = where.bug();
  return config;
}

} // namespace

dispatcher_process::dispatcher_process(world& where, coordinator_process& in, incarnation self)
    : world_(where)
    , in_(in)
    , core_(dispatcher_config(where, in.found(), self))
    , course_was_lost_(in.found().course_is_lost) {}

void dispatcher_process::receive(const message& what) {
  const auto now = in_.now();
  std::visit(common::action_handlers{
                 [&](const protocol::worker_status& one) { perform(core_.on_worker_status(one, now)); },
                 [&](const protocol::shard_status& one) { perform(core_.on_shard_status(one, now)); },
                 [&](const protocol::kept& one) { perform(core_.on_kept(one, now)); },
                 [&](const protocol::evaluated& one) { perform(core_.on_evaluated(one, now)); },
                 [](const auto&) {}},
             what);
}

void dispatcher_process::tick() { perform(core_.on_tick(in_.now())); }

void dispatcher_process::go_back(const data_dispatcher::wanted_change& wanted) {
  wanted_revision_ = wanted.revision;
  perform(core_.on_wanted_change(wanted, in_.now()));
}

// ---- what the core decided

void dispatcher_process::perform(const data_dispatcher::data_dispatcher_actions& actions) {
  for (const auto& action : actions) {
    if (!in_.alive) return;
    std::visit([this](const auto& order) { perform_one(order); }, action);
  }
}

void dispatcher_process::perform_one(const data_dispatcher::to_worker& order) {
  if (std::holds_alternative<protocol::lease>(order.message)) check_lease(order.to);
  std::visit([&](const auto& what) { world_.send(in_, protocol::worker_role(order.to), what); },
             order.message);
}

/// R16a: no step is made as the specification was before the operator changed it.
void dispatcher_process::check_lease(worker_id to) const {
  if (!wanted_revision_ || world_.happened().disk_lost) return;
  for (std::uint32_t shard = 0; shard < world_.job().ps_shards; ++shard)
    if (world_.disk_of({shard}).history().back().revision < *wanted_revision_)
      broken("R16a", "worker {} is leased slots before ps_shard {} has revision {}", to, shard,
             *wanted_revision_);
}

void dispatcher_process::perform_one(const data_dispatcher::to_ps_shard& order) {
  if (const auto* floor = std::get_if<protocol::floor>(&order.message))
    world_.happened().note_floor(*floor, world_.journal().timeline());
  std::visit([&](const auto& what) { world_.send(in_, protocol::ps_shard_role(order.to), what); },
             order.message);
}

void dispatcher_process::perform_one(const data_dispatcher::to_coordinator& order) { in_.hear(order); }

void dispatcher_process::perform_one(const data_dispatcher::journal_course& order) {
  in_.write(
      [course = order.course, was_lost = course_was_lost_](coordinator_journal& journal) {
        journal.course = course;
        if (was_lost) journal.course_is_lost = course.lost;
      },
      [this, id = order.id] { perform(core_.on_journaled(id, in_.now())); });
}

void dispatcher_process::perform_one(const data_dispatcher::decision_made& order) {
  world_.say(&in_, "{}: {}", order.event, order.reason);
  if (order.event == "going-back-refused") wanted_revision_.reset();
}

} // namespace dlrun::simulation
