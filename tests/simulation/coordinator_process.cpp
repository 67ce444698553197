#include "tests/simulation/coordinator_process.hpp"

#include "tests/simulation/world.hpp"

namespace dlrun::simulation {
namespace {

constexpr protocol::role_name agent_role{protocol::role_kind::agent, 0};

coordinator::coordinator_core_config config_for(world& where, protocol::fence self) {
  coordinator::coordinator_core_config config;
  config.self = self.incarnation;
  config.workers = where.plan().workers;
  config.ps_shards = where.job().ps_shards;
  config.evaluates = where.plan().evaluates;
  config.parameter_blocks = where.job().ps_shards; // one each
  for (std::uint32_t shard = 0; shard < where.job().ps_shards; ++shard)
    config.blocks_of_shard.emplace_back(shard, shard + 1);
  config.steps = where.job().steps;
  config.repeat_after = where.plan().period * 2;
  config.ps_shards_recover = where.plan().logs;
  config.random = [&where] { return where.random().next(); };
  return config;
}

} // namespace

coordinator_process::coordinator_process(world& where, protocol::fence self)
    : process(where, {protocol::role_kind::coordinator, 0}, self)
    , core_(config_for(where, self)) {}

void coordinator_process::start() {
  restart_dispatcher();
  every(world_.plan().period / 2, [this] {
    perform(core_.on_tick(world_.now()));
    perform(dispatcher_->on_tick(world_.now()));
  });
}

void coordinator_process::restart_dispatcher() {
  const protocol::endpoint at{"127.0.0.1", 1, self().incarnation.value, {}};
  perform(core_.on_dispatcher_started(at, world_.now()));
  data_dispatcher::data_dispatcher_core_config config;
  config.self = core_.dispatcher_incarnation();
  config.ps_shards = world_.job().ps_shards;
  config.steps = world_.job().steps;
  config.microbatches_per_step = world_.job().slots;
  config.evaluates = world_.plan().evaluates;
  config.silent_after = world_.plan().silent_after;
  config.repeat_after = world_.plan().period;
  config.straggler_min = world_.plan().period * 2;
  dispatcher_.emplace(config);
  world_.say(this, "starts dispatcher incarnation {}", config.self);
  for (const auto& one : core_.available_workers())
    perform(dispatcher_->on_worker_joined(one.worker, one.incarnation, world_.now()));
}

void coordinator_process::receive(const message& what) {
  const auto now = world_.now();
  std::visit(
      overloaded{
          [&](const agent_hello&) { perform(core_.on_agent(now)); },
          [&](const protocol::role_started& one) { perform(core_.on_role_started(one, now)); },
          [&](const protocol::role_exited& one) { perform(core_.on_role_exited(one, now)); },
          [&](const protocol::join& one) {
            asker_ = one.self.incarnation;
            perform(core_.on_join(one, now));
          },
          [&](const protocol::worker_status& one) { perform(dispatcher_->on_worker_status(one, now)); },
          [&](const protocol::shard_status& one) { perform(dispatcher_->on_shard_status(one, now)); },
          [&](const protocol::evaluated& one) { perform(dispatcher_->on_evaluated(one, now)); },
          [&](const shard_digests& one) { perform(core_.on_digests(one.shard, one.reply, now)); },
          [](const auto&) {}},
      what);
}

void coordinator_process::perform(const coordinator::coordinator_actions& actions) {
  for (const auto& action : actions) std::visit([this](const auto& order) { perform_one(order); }, action);
}

void coordinator_process::perform(const data_dispatcher::data_dispatcher_actions& actions) {
  for (const auto& action : actions) std::visit([this](const auto& order) { perform_one(order); }, action);
}

void coordinator_process::perform_one(const coordinator::send_grant& order) { send(agent_role, order.grant); }

void coordinator_process::perform_one(const coordinator::send_directory& order) {
  for (const auto& entry : order.directory.entries)
    if (entry.joined && entry.role.kind != protocol::role_kind::coordinator &&
        entry.role.kind != protocol::role_kind::data_dispatcher)
      send(entry.role, order.directory);
}

void coordinator_process::perform_one(const coordinator::answer_join& order) {
  send(order.role, answered_join{asker_, order.reply});
}

void coordinator_process::perform_one(const coordinator::worker_available& order) {
  perform(dispatcher_->on_worker_joined(order.worker, order.incarnation, world_.now()));
}

void coordinator_process::perform_one(const coordinator::worker_gone& order) {
  perform(dispatcher_->on_worker_lost(order.worker, order.incarnation, world_.now()));
}

void coordinator_process::perform_one(const coordinator::request_digests& order) {
  send(protocol::ps_shard_role(order.shard), order.request);
}

void coordinator_process::perform_one(const coordinator::finish_job& order) {
  world_.say(this, "ends the job: {}", order.ended.reason);
  world_.finish(order.ended);
}

void coordinator_process::perform_one(const data_dispatcher::send_lease& order) {
  if (!order.reason.empty())
    world_.say(this, "leases [{}, {}) to worker {}: {}", order.lease.slots.begin, order.lease.slots.end,
               order.to, order.reason);
  send(protocol::worker_role(order.to), order.lease);
}

void coordinator_process::perform_one(const data_dispatcher::order_evaluation& order) {
  send(protocol::worker_role(order.to), order.order);
}

void coordinator_process::perform_one(const data_dispatcher::training_finished&) {
  world_.say(this, "sees all steps applied and committed");
  perform(core_.on_training_finished(world_.now()));
}

void coordinator_process::perform_one(const data_dispatcher::evaluation_finished& order) {
  perform(core_.on_evaluated(order.result, world_.now()));
}

void coordinator_process::perform_one(const data_dispatcher::slots_redispatched& order) {
  world_.say(this, "slots of worker {}/{} are with others", order.lost, order.lost_incarnation);
  core_.on_redispatched(order.lost, order.lost_incarnation, order.after);
}

void coordinator_process::perform_one(const data_dispatcher::worker_contributed& order) {
  core_.on_contributed(order.what, world_.now());
}

} // namespace dlrun::simulation
