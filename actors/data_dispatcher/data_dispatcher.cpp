#include "actors/data_dispatcher/data_dispatcher.hpp"

#include "actors/common/clock.hpp"

namespace dlrun::data_dispatcher {
namespace {

constexpr auto tick_period = std::chrono::milliseconds(50);

data_dispatcher_core_config core_config(const common::role_context& context) {
  const auto& job = *context.job;
  return {.self = context.self.incarnation,
          .ps_shards = job.ps_shards(),
          .steps = job.steps(),
          .microbatches_per_step = job.microbatches_per_step(),
          .evaluates = job.spec.data().has_validation()};
}

} // namespace

data_dispatcher_state::behavior data_dispatcher_state::start(pointer self, common::role_context context,
                                                             protocol::coordinator_actor coordinator) {
  self->state.role.reset(new data_dispatcher_state(self, std::move(context), std::move(coordinator)));
  // It serves one coordinator and ends with it.
  self->monitor(self->state.role->coordinator_);
  self->set_down_handler([self](const caf::down_msg&) { self->quit(); });
  self->send(self, protocol::tick{});
  return self->state.role->make_behavior();
}

data_dispatcher_state::data_dispatcher_state(pointer self, common::role_context context,
                                             protocol::coordinator_actor coordinator)
    : self_{self}
    , context_{std::move(context)}
    , coordinator_{std::move(coordinator)}
    , core_{core_config(context_)} {}

data_dispatcher_state::behavior data_dispatcher_state::make_behavior() {
  return {
      [this](const protocol::worker_status& status) { on_worker_status(status); },
      [this](const protocol::shard_status& status) {
        carry_out(core_.on_shard_status(status, common::now()));
      },
      [this](const protocol::evaluated& result) { carry_out(core_.on_evaluated(result, common::now())); },
      [this](const protocol::tick&) { on_tick(); },
      [this](const protocol::worker_available& who, const protocol::worker_actor& handle) {
        on_worker_available(who, handle);
      },
      [this](const protocol::worker_gone& who) { on_worker_gone(who); },
  };
}

void data_dispatcher_state::on_worker_available(const protocol::worker_available& who,
                                                const protocol::worker_actor& handle) {
  workers_[who.worker] = handle;
  carry_out(core_.on_worker_joined(who.worker, who.incarnation, common::now()));
}

void data_dispatcher_state::on_worker_gone(const protocol::worker_gone& who) {
  carry_out(core_.on_worker_lost(who.worker, who.incarnation, common::now()));
}

void data_dispatcher_state::on_worker_status(const protocol::worker_status& status) {
  slots_computed_[{status.worker, status.self.incarnation}] = status.slots_computed;
  carry_out(core_.on_worker_status(status, common::now()));
}

void data_dispatcher_state::on_tick() {
  self_->delayed_send(self_, tick_period, protocol::tick{});
  carry_out(core_.on_tick(common::now()));
  report_progress();
}

void data_dispatcher_state::report_progress() {
  protocol::training_progress message;
  for (const auto& [shard, status] : core_.shards()) message.shards.push_back(status);
  for (const auto& [start, slots] : slots_computed_) message.slots_computed += slots;
  self_->send(coordinator_, std::move(message));
}

void data_dispatcher_state::carry_out(const data_dispatcher_actions& actions) {
  for (const auto& action : actions) std::visit([this](const auto& what) { carry_out(what); }, action);
}

void data_dispatcher_state::carry_out(const send_lease& action) {
  if (!action.reason.empty())
    context_.log->info("lease: worker {} incarnation {} slots [{}, {}): {}", action.to, action.lease.worker,
                       action.lease.slots.begin, action.lease.slots.end, action.reason);
  if (const auto found = workers_.find(action.to); found != workers_.end())
    self_->send(found->second, action.lease);
}

void data_dispatcher_state::carry_out(const order_evaluation& action) {
  if (const auto found = workers_.find(action.to); found != workers_.end())
    self_->send(found->second, action.order);
}

void data_dispatcher_state::carry_out(const training_finished&) {
  report_progress();
  context_.log->info("training-finished: version {} on every PS shard", context_.job->steps());
  self_->send(coordinator_, protocol::training_finished{});
}

void data_dispatcher_state::carry_out(const evaluation_finished& action) {
  self_->send(coordinator_, action.result);
}

void data_dispatcher_state::carry_out(const slots_redispatched& action) {
  context_.log->info("slots-redispatched: of worker {} incarnation {} after {} us", action.lost,
                     action.lost_incarnation, action.after.count());
  self_->send(coordinator_, protocol::slots_redispatched{action.lost, action.lost_incarnation,
                                                         static_cast<std::uint64_t>(action.after.count())});
}

void data_dispatcher_state::carry_out(const worker_contributed& action) {
  self_->send(coordinator_, protocol::worker_contributed{action.what});
}

} // namespace dlrun::data_dispatcher
