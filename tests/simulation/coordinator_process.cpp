#include "tests/simulation/coordinator_process.hpp"

#include "tests/simulation/world.hpp"

namespace dlrun::simulation {
namespace {

using protocol::ps_shard_role;

coordinator::coordinator_core_config coordinator_config(world& where, protocol::fence self,
                                                        std::uint64_t agent) {
  coordinator::coordinator_core_config config;
  config.self = self.incarnation;
  config.token = self.token;
  config.workers = where.plan().workers;
  config.ps_shards = where.job().ps_shards;
  config.evaluates = where.plan().evaluates;
  for (std::uint32_t shard = 0; shard < where.job().ps_shards; ++shard)
    config.blocks_of_shard.emplace_back(shard, shard + 1); // one each
  config.steps = where.job().steps;
  config.repeat_after = where.plan().period * 2;
  config.is_durable = where.is_durable();
  config.agent = agent;
  config.random = [&where] { return where.random().next(); };
  return config;
}

data_dispatcher::evaluation_rules evaluation_rules_of(const scenario& plan) {
  data_dispatcher::evaluation_rules rules;
  rules.versions = plan.evaluations;
  rules.ahead_max = plan.ahead_max;
  const protocol::watched_metric loss{[](const protocol::evaluated& one) { return loss_of(one); }, false};
  if (plan.patience > 0) rules.stopping = data_dispatcher::stopping_rule{loss, plan.patience, 0};
  if (plan.keeps_best) rules.best = loss;
  return rules;
}

data_dispatcher::data_dispatcher_core_config dispatcher_config(world& where, incarnation self) {
  data_dispatcher::data_dispatcher_core_config config;
  config.self = self;
  config.workers = where.plan().workers;
  config.ps_shards = where.job().ps_shards;
  config.steps = where.job().steps;
  config.microbatches_per_step = where.job().slots;
  config.evaluates = where.plan().evaluates;
  config.silent_after = where.plan().silent_after;
  config.repeat_after = where.plan().period;
  config.straggler_min = where.plan().period * 2;
  config.durability = where.plan().durability;
  config.sizes.slots_of = [job = where.job()](step_id step) { return job.slots_of(step); };
  config.sizes.records_of = [job = where.job()](step_id step, slot_id slot) {
    return job.records_of(step, slot);
  };
  config.sizes.records_min = where.plan().records_min;
  config.couples = where.job().couples;
  config.evaluations = evaluation_rules_of(where.plan());
  config.max_recovery = where.plan().max_recovery;
  config.course = where.journal().course;
  config.course.lost = where.journal().course_is_lost;
  config.course.ended = where.journal().ended.has_value();
  config.bug = where.bug();
  return config;
}

coordinator::journaled_job journaled(world& where) {
  coordinator::journaled_job job;
  const auto& journal = where.journal();
  for (const auto& [role, kept] : journal.roles) job.roles.push_back(kept);
  job.ended = journal.ended;
  job.lost = journal.fences_are_lost;
  for (std::uint32_t shard = 0; shard < where.job().ps_shards; ++shard)
    job.highest_found = std::max(job.highest_found, where.disk_of({shard}).opened_by);
  job.evaluations = journal.course.evaluations;
  return job;
}

} // namespace

coordinator_process::coordinator_process(world& where, protocol::fence self, std::uint64_t agent)
    : process(where, {protocol::role_kind::coordinator, 0}, self)
    , agent_(agent) {}

void coordinator_process::start() {
  auto& journal = world_.journal();
  if (journal.owner >= self().incarnation)
    return world_.kill(*this, "its journal is opened by a newer start");
  journal.owner = self().incarnation;
  core_.emplace(coordinator_config(world_, self(), agent_), journaled(world_));
  restart_dispatcher();
  every(world_.plan().period / 2, [this] {
    perform(core_->on_tick(world_.now()));
    if (alive) perform(dispatcher_->on_tick(world_.now()));
  });
}

void coordinator_process::restart_dispatcher() {
  finish_writes();
  if (!alive) return;
  ++dispatchers_;
  const protocol::endpoint at{"127.0.0.1", 1, self().incarnation.value, {}};
  const auto announce = core_->on_dispatcher_started(at);
  dispatcher_.emplace(dispatcher_config(world_, core_->dispatcher_incarnation()));
  world_.say(this, "starts dispatcher incarnation {}", core_->dispatcher_incarnation());
  perform(announce);
  for (const auto& one : core_->starts().available_ps_shards()) perform_one(one);
  for (const auto& one : core_->starts().available_workers()) perform_one(one);
}

void coordinator_process::go_back(const protocol::go_back& wanted) {
  perform(dispatcher_->on_go_back(wanted, world_.now()));
}

void coordinator_process::receive(const message& what) {
  const auto now = world_.now();
  std::visit(
      overloaded{
          [&](const agent_hello&) { perform(core_->on_agent()); },
          [&](const protocol::role_started& one) { perform(core_->on_role_started(one)); },
          [&](const protocol::role_exited& one) { perform(core_->on_role_exited(one, now)); },
          [&](const protocol::join& one) {
            asker_ = one.self.incarnation;
            perform(core_->on_join(one));
          },
          [&](const protocol::worker_status& one) { perform(dispatcher_->on_worker_status(one, now)); },
          [&](const protocol::shard_status& one) { perform(dispatcher_->on_shard_status(one, now)); },
          [&](const protocol::kept& one) { perform(dispatcher_->on_kept(one, now)); },
          [&](const protocol::evaluated& one) { perform(dispatcher_->on_evaluated(one, now)); },
          [&](const shard_digests& one) { perform(core_->ending().on_digests(one.shard, one.reply)); },
          [](const auto&) {}},
      what);
}

void coordinator_process::perform(const coordinator::coordinator_actions& actions) {
  for (const auto& action : actions) {
    if (!alive) return;
    std::visit(overloaded{[](const coordinator::slot_suspected&) {}, // it is in the directory
                          [this](const auto& order) { perform_one(order); }},
               action);
  }
}

void coordinator_process::perform(const data_dispatcher::data_dispatcher_actions& actions) {
  for (const auto& action : actions) {
    if (!alive) return;
    std::visit([this](const auto& order) { perform_one(order); }, action);
  }
}

// ---- the coordinator's decisions
// -----------------------------------------------------------------------------------

void coordinator_process::perform_one(const coordinator::send_grant& order) { send(agent_role, order.grant); }

void coordinator_process::perform_one(const coordinator::send_directory& order) {
  for (const auto& entry : order.directory.entries)
    if (entry.joined && entry.role.kind != protocol::role_kind::coordinator &&
        entry.role.kind != protocol::role_kind::data_dispatcher)
      send(entry.role, order.directory);
}

void coordinator_process::perform_one(const coordinator::answer_join& order) {
  send(order.role, answered_join{asker_, self().incarnation, order.reply});
}

void coordinator_process::perform_one(const protocol::worker_available& order) {
  perform(dispatcher_->on_worker_joined(order.worker, order.incarnation, world_.now()));
}

void coordinator_process::perform_one(const protocol::worker_gone& order) {
  perform(dispatcher_->on_worker_lost(order.worker, order.incarnation, world_.now()));
}

void coordinator_process::perform_one(const protocol::ps_shard_available& order) {
  perform(dispatcher_->on_shard_started(order.shard, order.incarnation, world_.now()));
}

void coordinator_process::perform_one(const protocol::ps_shard_gone& order) {
  perform(dispatcher_->on_shard_lost(order.shard, order.incarnation, world_.now()));
}

void coordinator_process::perform_one(const protocol::poisoned_slot& order) {
  perform(dispatcher_->on_poisoned_slot(order.what, world_.now()));
}

void coordinator_process::perform_one(const coordinator::request_digests& order) {
  send(ps_shard_role(order.shard), order.request);
}

void coordinator_process::perform_one(const protocol::close_training& order) {
  perform(dispatcher_->on_close(order.timeline, world_.now()));
}

void coordinator_process::perform_one(const coordinator::finish_job& order) {
  world_.report(order.ended, *core_);
  perform(core_->ending().on_report_written(order.ended));
}

void coordinator_process::perform_one(const coordinator::announce_end& order) {
  world_.say(this, "ends the job: {}", order.ended.reason);
  send(agent_role, order.ended);
}

// ---- the dispatcher's decisions
// ------------------------------------------------------------------------------------

void coordinator_process::perform_one(const data_dispatcher::send_lease& order) {
  if (!order.reason.empty())
    world_.say(this, "leases [{}, {}) to worker {}: {}", order.lease.slots.begin, order.lease.slots.end,
               order.to, order.reason);
  send(protocol::worker_role(order.to), order.lease);
}

void coordinator_process::perform_one(const data_dispatcher::order_evaluation& order) {
  world_.say(this, "asks worker {} to evaluate version {}", order.to, order.order.version);
  send(protocol::worker_role(order.to), order.order);
}

void coordinator_process::perform_one(const data_dispatcher::training_finished& order) {
  world_.say(this, "sees all steps up to version {} applied and committed on timeline {}", order.version,
             order.timeline);
  perform(core_->ending().on_training_finished(order.timeline, order.version));
}

void coordinator_process::perform_one(const data_dispatcher::training_closed& order) {
  perform(core_->ending().on_training_closed(order.timeline));
}

void coordinator_process::perform_one(const data_dispatcher::evaluation_finished& order) {
  world_.say(this, "has an evaluation of version {}", order.result.version);
  perform(core_->ending().on_evaluated(order.result));
}

void coordinator_process::perform_one(const data_dispatcher::slots_redispatched& order) {
  world_.say(this, "slots of worker {}/{} are with others", order.lost, order.lost_incarnation);
  core_->recoveries().on_redispatched(order.lost, order.lost_incarnation, order.after);
}

void coordinator_process::perform_one(const data_dispatcher::worker_contributed& order) {
  core_->recoveries().on_resumed(protocol::worker_role(order.what.worker), order.what.incarnation,
                                 world_.now());
}

void coordinator_process::perform_one(const data_dispatcher::ps_shard_resumed& order) {
  core_->recoveries().on_resumed(ps_shard_role(order.shard), order.incarnation, world_.now());
}

void coordinator_process::perform_one(const data_dispatcher::send_rewind& order) {
  send(ps_shard_role(order.to), order.message);
}

void coordinator_process::perform_one(const data_dispatcher::send_floor& order) {
  world_.note_floor(order.message);
  send(ps_shard_role(order.to), order.message);
}

void coordinator_process::perform_one(const data_dispatcher::send_go_on& order) {
  send(ps_shard_role(order.to), order.message);
}

void coordinator_process::perform_one(const data_dispatcher::send_pin& order) {
  send(ps_shard_role(order.to), order.message);
}

void coordinator_process::perform_one(const data_dispatcher::send_name_snapshot& order) {
  send(ps_shard_role(order.to), order.message);
}

void coordinator_process::perform_one(const data_dispatcher::send_probe& order) {
  send(order.to, order.message);
}

void coordinator_process::perform_one(const data_dispatcher::timeline_started& order) {
  world_.say(this, "REWIND to version {} on timeline {}: {}", order.branch, order.timeline, order.reason);
  world_.note_rewind(order);
}

void coordinator_process::perform_one(const data_dispatcher::decision_made& order) {
  world_.say(this, "{}: {}", order.event, order.reason);
}

// ---- the journal
// -------------------------------------------------------------------------------------------------

void coordinator_process::perform_one(const coordinator::journal_fences& order) {
  write(
      [roles = order.roles](coordinator_journal& journal) {
        for (const auto& one : roles) journal.roles[one.role] = one;
        journal.fences_are_lost = false;
      },
      [this, id = order.id] { perform(core_->on_fences_journaled(id)); });
}

void coordinator_process::perform_one(const coordinator::journal_end& order) {
  write([ended = order.ended](coordinator_journal& journal) { journal.ended = ended; },
        [this] { perform(core_->ending().on_end_journaled()); });
}

void coordinator_process::perform_one(const data_dispatcher::journal_course& order) {
  write(
      [course = order.course](coordinator_journal& journal) {
        journal.course = course;
        journal.course_is_lost = false;
      },
      [this, id = order.id, dispatcher = dispatchers_] {
        if (dispatcher == dispatchers_) perform(dispatcher_->on_journaled(id, world_.now()));
      });
}

void coordinator_process::write(std::function<void(coordinator_journal&)> change,
                                std::function<void()> then) {
  writes_.push_back({std::move(change), std::move(then)});
  if (writing_) return;
  writing_ = true;
  after(world_.journal_delay(), [this] { write_next(); });
}

void coordinator_process::write_next() {
  writing_ = false;
  if (writes_.empty()) return;
  if (world_.journal().owner != self().incarnation)
    return world_.kill(*this, "its journal is opened by a newer start");
  const auto next = std::move(writes_.front());
  writes_.pop_front();
  next.change(world_.journal());
  if (!writes_.empty()) {
    writing_ = true;
    after(world_.journal_delay(), [this] { write_next(); });
  }
  next.then();
}

void coordinator_process::finish_writes() {
  while (alive && !writes_.empty()) write_next();
}

} // namespace dlrun::simulation
