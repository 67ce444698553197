#include "actors/data_dispatcher/data_dispatcher.hpp"

#include "actors/common/ask.hpp"
#include "actors/common/clock.hpp"
#include "actors/common/evaluation_metrics.hpp"
#include "actors/data_dispatcher/course_journal.hpp"
#include "job/quantity.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::data_dispatcher {
namespace {

constexpr auto tick_period = std::chrono::milliseconds(50);

/// What the specification evaluates before the last version, and what it goes by.
evaluation_rules rules_of(const common::job_context& job) {
  evaluation_rules rules{.versions = job.evaluations(), .best = common::best_metric(job)};
  if (!job.spec.train().has_early_stopping()) return rules;
  const auto& wanted = job.spec.train().early_stopping();
  auto metric = common::watched_metric_from(job.metric_names, wanted.metric(), wanted.mode(),
                                            "train.early_stopping.metric");
  DLRUN_CHECK(metric.has_value(), "the specification was checked");
  rules.stopping =
      stopping_rule{std::move(*metric), static_cast<std::uint64_t>(wanted.patience()), wanted.min_delta()};
  return rules;
}

slot_sizes sizes_of(const common::job_context& job) {
  return {[order = job.sampler](step_id step) { return order.slots(step); },
          [order = job.sampler](step_id step, slot_id slot) { return order.records_in_slot(step, slot); },
          static_cast<std::uint64_t>(job.model->min_batch())};
}

data_dispatcher_core_config core_config(const common::role_context& context, journaled_course course) {
  const auto& job = *context.job;
  const auto max_recovery = job::parse_duration(job.spec.durability().max_recovery()).value_or(0);
  return {.self = context.self.incarnation,
          .ps_shards = job.ps_shards(),
          .steps = job.steps(),
          .microbatches_per_step = job.microbatches_per_step(),
          .evaluates = job.spec.data().has_validation(),
          .durability = job.durability(),
          .sizes = sizes_of(job),
          .couples = job.couples(),
          .evaluations = rules_of(job),
          .max_recovery =
              std::chrono::duration_cast<protocol::duration>(std::chrono::duration<double>(max_recovery)),
          .course = std::move(course)};
}

} // namespace

data_dispatcher_state::behavior data_dispatcher_state::start(pointer self, common::role_context context,
                                                             arguments with) {
  auto course = with.journal ? read_course(with.journal->entries()) : journaled_course{};
  const auto unreadable = course ? std::string{} : course.error().message;
  self->state.role.reset(new data_dispatcher_state(self, std::move(context), std::move(with),
                                                   std::move(course).value_or(journaled_course{})));
  auto& role = *self->state.role;
  if (!unreadable.empty()) role.quit(unreadable);
  role.apply_revision();
  // It serves one coordinator and ends with it.
  self->monitor(role.with_.coordinator);
  self->set_down_handler([self](const caf::down_msg&) { self->quit(); });
  self->send(self, protocol::tick{});
  return role.make_behavior();
}

data_dispatcher_state::data_dispatcher_state(pointer self, common::role_context context, arguments with,
                                             journaled_course course)
    : self_{self}
    , context_{std::move(context)}
    , with_{std::move(with)}
    , core_{core_config(context_, std::move(course))} {}

void data_dispatcher_state::quit(const std::string& why) {
  context_.log->error("quit: {}", why);
  self_->quit(caf::make_error(caf::sec::runtime_error, why));
}

data_dispatcher_state::behavior data_dispatcher_state::make_behavior() {
  return {
      [this](const protocol::worker_status& status) { on_worker_status(status); },
      [this](const protocol::shard_status& status) {
        carry_out(core_.on_shard_status(status, common::now()));
      },
      [this](const protocol::evaluated& result) { on_evaluated(result); },
      [this](const protocol::kept& answer) { carry_out(core_.on_kept(answer, common::now())); },
      [this](const protocol::divergence& what) { on_divergence(what); },
      [this](const protocol::tick&) { on_tick(); },
      [this](const protocol::worker_available& who, const protocol::worker_actor& handle) {
        on_worker_available(who, handle);
      },
      [this](const protocol::worker_gone& who) { on_worker_gone(who); },
      [this](const protocol::ps_shard_available& who, const protocol::ps_shard_actor& handle) {
        on_ps_shard_available(who, handle);
      },
      [this](const protocol::ps_shard_gone& who) { on_ps_shard_gone(who); },
      [this](const protocol::poisoned_slot& slot) {
        carry_out(core_.on_poisoned_slot(slot.what, common::now()));
      },
      [this](const protocol::go_back& wanted) { carry_out(core_.on_go_back(wanted, common::now())); },
      [this](const protocol::close_training& wanted) {
        carry_out(core_.on_close(wanted.timeline, common::now()));
      },
      [](const protocol::continuation& task) { common::run(task); },
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

void data_dispatcher_state::on_ps_shard_available(const protocol::ps_shard_available& who,
                                                  const protocol::ps_shard_actor& handle) {
  ps_shards_[who.shard] = handle;
  carry_out(core_.on_shard_started(who.shard, who.incarnation, common::now()));
}

void data_dispatcher_state::on_ps_shard_gone(const protocol::ps_shard_gone& who) {
  carry_out(core_.on_shard_lost(who.shard, who.incarnation, common::now()));
}

void data_dispatcher_state::on_worker_status(const protocol::worker_status& status) {
  auto& tally = tallies_[protocol::worker_role(status.worker)];
  if (status.self.incarnation >= tally.incarnation)
    tally = {.role = protocol::worker_role(status.worker),
             .incarnation = status.self.incarnation,
             .slots_computed = status.slots_computed};
  carry_out(core_.on_worker_status(status, common::now()));
}

/// One with another number of sums is of no worker of this job, and would be kept in the journal.
void data_dispatcher_state::on_evaluated(const protocol::evaluated& result) {
  if (result.metric_bits.size() == context_.job->model->metrics().names().size())
    carry_out(core_.on_evaluated(result, common::now()));
}

/// One of a timeline that was left since means nothing. The coordinator tells with it what is kept,
/// so it waits until every PS shard has said so on that timeline; whoever saw it repeats it.
void data_dispatcher_state::on_divergence(const protocol::divergence& what) {
  const auto& shards = core_.shards();
  if (shards.size() < context_.job->ps_shards() ||
      std::ranges::any_of(shards, [&](const auto& one) { return one.second.timeline != what.timeline; }))
    return;
  report_progress();
  self_->send(with_.coordinator, what);
}

/// What `dlrun resume` was asked to change is a revision of the specification. It is there when all
/// PS shards are on a timeline that has it.
bool data_dispatcher_state::awaits_revision() const {
  const auto& job = *context_.job;
  if (job.revision() == 0) return false;
  return core_.shards().size() < job.ps_shards() || std::ranges::any_of(core_.shards(), [&](const auto& one) {
           const auto& history = one.second.durable.history;
           return history.empty() || history.back().revision < job.revision();
         });
}

/// Wanted from the start on: before anything else is decided of shards that died at different
/// versions.
void data_dispatcher_state::apply_revision() {
  const auto& job = *context_.job;
  if (awaits_revision())
    carry_out(core_.on_go_back({job.goes_on_from(), job.revision(), job.skipped()}, common::now()));
}

void data_dispatcher_state::on_tick() {
  self_->delayed_send(self_, tick_period, protocol::tick{});
  carry_out(core_.on_tick(common::now()));
  apply_revision();
  report_progress();
}

void data_dispatcher_state::report_progress() {
  protocol::training_progress message;
  for (const auto& [role, tally] : tallies_) message.tallies.push_back(tally);
  for (const auto& [shard, status] : core_.shards()) {
    message.shards.push_back(status);
    message.tallies.push_back({.role = protocol::ps_shard_role(shard),
                               .incarnation = status.self.incarnation,
                               .bytes_logged = status.bytes_logged,
                               .bytes_snapshotted = status.bytes_snapshotted});
  }
  self_->send(with_.coordinator, std::move(message));
}

void data_dispatcher_state::carry_out(const data_dispatcher_actions& actions) {
  for (const auto& action : actions) std::visit([this](const auto& what) { carry_out(what); }, action);
}

/// No step is made as the specification was before it was changed. A lease that is not sent is due
/// again.
void data_dispatcher_state::carry_out(const send_lease& action) {
  if (awaits_revision()) return;
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

void data_dispatcher_state::carry_out(const training_finished& action) {
  report_progress();
  context_.log->info("training-finished: version {} on every PS shard", action.version);
  self_->send(with_.coordinator, protocol::training_finished{action.timeline, action.version});
}

void data_dispatcher_state::carry_out(const training_closed& action) {
  report_progress();
  self_->send(with_.coordinator, protocol::training_closed{action.timeline});
}

void data_dispatcher_state::carry_out(const evaluation_finished& action) {
  self_->send(with_.coordinator, action.result);
}

void data_dispatcher_state::carry_out(const slots_redispatched& action) {
  context_.log->info("slots-redispatched: of worker {} incarnation {} after {} us", action.lost,
                     action.lost_incarnation, action.after.count());
  self_->send(with_.coordinator,
              protocol::slots_redispatched{action.lost, action.lost_incarnation,
                                           static_cast<std::uint64_t>(action.after.count())});
}

void data_dispatcher_state::carry_out(const worker_contributed& action) {
  self_->send(with_.coordinator, protocol::worker_contributed{action.what});
}

void data_dispatcher_state::carry_out(const ps_shard_resumed& action) {
  self_->send(with_.coordinator,
              protocol::ps_shard_resumed{action.shard, action.incarnation, action.version});
}

// ---- snapshots and rewinds
// ---------------------------------------------------------------------------------------------

void data_dispatcher_state::carry_out(const journal_course& action) {
  const auto post = common::poster<protocol::local_data_dispatcher_actor>{self_};
  with_.journal->write(to_writes(action.course), [this, post, id = action.id](const result<void>& written) {
    post([this, id, written] {
      if (!written) return quit(written.error().message);
      carry_out(core_.on_journaled(id, common::now()));
    });
  });
}

template <class Message>
void data_dispatcher_state::send_to(ps_shard_id shard, const Message& message) {
  if (const auto found = ps_shards_.find(shard); found != ps_shards_.end())
    self_->send(found->second, message);
}

void data_dispatcher_state::carry_out(const send_rewind& action) { send_to(action.to, action.message); }
void data_dispatcher_state::carry_out(const send_floor& action) { send_to(action.to, action.message); }
void data_dispatcher_state::carry_out(const send_go_on& action) { send_to(action.to, action.message); }
void data_dispatcher_state::carry_out(const send_pin& action) { send_to(action.to, action.message); }
void data_dispatcher_state::carry_out(const send_name_snapshot& action) {
  send_to(action.to, action.message);
}

void data_dispatcher_state::carry_out(const send_probe& action) {
  if (action.to.kind == protocol::role_kind::ps_shard) return send_to({action.to.index}, action.message);
  if (const auto found = workers_.find({action.to.index}); found != workers_.end())
    self_->send(found->second, action.message);
}

void data_dispatcher_state::carry_out(const timeline_started& action) {
  context_.log->warn("rewind: timeline {} goes on from version {}: {}", action.timeline, action.branch,
                     action.reason);
  self_->send(with_.coordinator,
              protocol::timeline_started{action.timeline, action.branch, action.steps_redone, action.reason,
                                         action.on_purpose});
}

void data_dispatcher_state::carry_out(const decision_made& action) {
  context_.log->info("{}: {}", action.event, action.reason);
}

} // namespace dlrun::data_dispatcher
