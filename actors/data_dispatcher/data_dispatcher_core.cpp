#include "actors/data_dispatcher/data_dispatcher_core.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::data_dispatcher {

using protocol::duration;
using protocol::time_point;

namespace {

std::function<std::uint32_t(step_id)> slots_of(const data_dispatcher_core_config& config) {
  if (config.sizes.slots_of) return config.sizes.slots_of;
  return [slots = config.microbatches_per_step](step_id) { return slots; };
}

} // namespace

data_dispatcher_core::data_dispatcher_core(data_dispatcher_core_config config)
    : config_(std::move(config))
    , leases_({.dispatcher = config_.self,
               .slots = config_.microbatches_per_step,
               .silent_after = config_.silent_after,
               .repeat_after = config_.repeat_after,
               .retry_idle_after = config_.retry_idle_after})
    , shards_(config_.ps_shards)
    , evaluator_(config_.repeat_after)
    , stalls_({.steps = config_.steps, .slots_of = slots_of(config_)}) {
  DLRUN_CHECK(config_.ps_shards >= 1, "a job has at least one PS shard");
  if (config_.durability == protocol::durability::off) return;
  timeline_keeper_config keeper{.self = config_.self,
                                .ps_shards = config_.ps_shards,
                                .steps = config_.steps,
                                .sizes = config_.sizes,
                                .durability = config_.durability,
                                .couples = config_.couples,
                                .evaluations = std::exchange(config_.evaluations, {}),
                                .max_recovery = config_.max_recovery,
                                .repeat_after = config_.repeat_after,
                                .bug = config_.bug};
  keeper.evaluations.steps = config_.steps;
  if (config_.evaluates) keeper.evaluations.versions.insert({config_.steps});
  keeper_.emplace(std::move(keeper), std::exchange(config_.course, {}));
}

// ---- what the operator wants

data_dispatcher_actions data_dispatcher_core::on_wanted_change(const wanted_change& wanted, time_point now) {
  data_dispatcher_actions out;
  if (!keeper_) return out; // nothing is kept to go back to
  change_ = wanted;
  ask_for_change(now, out);
  return out;
}

/// It is there when all PS shards are on a timeline that has it.
bool data_dispatcher_core::awaits_change() const { return change_ && !shards_.all_have(change_->revision); }

/// Again and again: a shard whose disk was lost since does not have it.
void data_dispatcher_core::ask_for_change(time_point now, data_dispatcher_actions& out) {
  if (awaits_change() && !keeper_->go_back(*change_, now, out)) change_.reset(); // the job is over
  withhold_leases();
}

/// R16a: no step is made as the specification was before it was changed.
void data_dispatcher_core::withhold_leases() {
  leases_.withhold(awaits_change() && !is_planted(config_.bug, protocol::planted_bug::lease_early));
}

// ---- workers

data_dispatcher_actions data_dispatcher_core::on_worker_joined(worker_id worker, incarnation incarnation,
                                                               time_point now) {
  data_dispatcher_actions out;
  if (!leases_.join(worker, incarnation, now, out)) return out;
  tell_keeper_of_workers(now);
  order_evaluation(now, out);
  return out;
}

data_dispatcher_actions data_dispatcher_core::on_worker_lost(worker_id worker, incarnation incarnation,
                                                             time_point now) {
  data_dispatcher_actions out;
  if (!leases_.lose(worker, incarnation, now, out)) return out;
  tell_keeper_of_workers(now);
  order_evaluation(now, out);
  return out;
}

data_dispatcher_actions data_dispatcher_core::on_worker_status(const protocol::worker_status& status,
                                                               time_point now) {
  data_dispatcher_actions out;
  workers_.on_status(status, now);
  if (leases_.on_status(status, now, out)) order_evaluation(now, out);
  return out;
}

/// Who is running but has not joined this dispatcher yet may keep gradients: until it had the time
/// to, nothing is called lost.
void data_dispatcher_core::tell_keeper_of_workers(time_point now) {
  if (!keeper_) return;
  const bool had_time = first_tick_ && now - *first_tick_ > config_.silent_after;
  const std::pair known{leases_.heard_changes(), leases_.size() >= config_.workers || had_time};
  if (std::exchange(told_of_workers_, known) != known) keeper_->set_workers(leases_.heard(), known.second);
}

// ---- PS shards

data_dispatcher_actions data_dispatcher_core::on_shard_status(const protocol::shard_status& status,
                                                              time_point now) {
  data_dispatcher_actions out;
  if (!shards_.on_status(status, out)) return out;
  stalls_.on_shard(status, now);
  withhold_leases();
  if (keeper_) keeper_->on_shard_status(status, now, out);
  finish_when_trained(now, out);
  return out;
}

void data_dispatcher_core::on_shard_started(ps_shard_id shard, incarnation incarnation) {
  if (shards_.on_started(shard, incarnation) && keeper_) keeper_->on_shard_lost(shard); // the one before
}

void data_dispatcher_core::on_shard_lost(ps_shard_id shard, incarnation incarnation) {
  if (shards_.on_lost(shard, incarnation) && keeper_) keeper_->on_shard_lost(shard);
}

data_dispatcher_actions data_dispatcher_core::on_divergence(const protocol::divergence& what) const {
  if (!shards_.all_on(what.timeline)) return {};
  return {to_coordinator{progress()}, to_coordinator{what}};
}

protocol::training_progress data_dispatcher_core::progress() const {
  protocol::training_progress message;
  for (const auto& [worker, heard] : workers_.heard())
    message.tallies.push_back({.role = protocol::worker_role(worker),
                               .incarnation = heard.incarnation,
                               .slots_computed = heard.slots_computed});
  for (const auto& [shard, status] : shards_.statuses()) {
    message.shards.push_back(status);
    message.tallies.push_back({.role = protocol::ps_shard_role(shard),
                               .incarnation = status.self.incarnation,
                               .bytes_logged = status.bytes_logged,
                               .bytes_snapshotted = status.bytes_snapshotted,
                               .bytes_copied = status.bytes_copied,
                               .copy_waited_us = status.copy_waited_us});
  }
  return message;
}

// ---- time

data_dispatcher_actions data_dispatcher_core::on_tick(time_point now) {
  data_dispatcher_actions out;
  if (!first_tick_) first_tick_ = now;
  notice_pause(now);
  leases_.renew(now, out);
  leases_.repeat(now, out);
  if (keeper_) {
    tell_keeper_of_workers(now);
    keeper_->on_tick(now, out);
    finish_when_trained(now, out);
  }
  order_evaluation(now, out);
  ask_for_change(now, out);
  look_for_stall(now, out);
  return out;
}

/// What was sent to this process while it was paused lies in its mailbox still: nobody is late
/// because of it.
void data_dispatcher_core::notice_pause(time_point now) {
  const auto gap = last_tick_ ? now - *last_tick_ : duration::zero();
  last_tick_ = now;
  if (gap < config_.silent_after / 2) return;
  leases_.excuse_silence(now);
  workers_.excuse_silence(now);
  stalls_.excuse(now);
}

void data_dispatcher_core::look_for_stall(time_point now, data_dispatcher_actions& out) {
  const auto evaluator = evaluation_due() ? evaluator_.evaluator() : std::nullopt;
  if (const auto news = stalls_.look({shards_, workers_, leases_, evaluator}, now))
    out.emplace_back(to_coordinator{*news});
}

// ---- the end

void data_dispatcher_core::finish_when_trained(time_point now, data_dispatcher_actions& out) {
  const version_id last = keeper_ ? keeper_->versions().last() : version_id{config_.steps};
  const auto timeline = keeper_ ? keeper_->timeline() : timeline_id{};
  if (finished_ == timeline || !(keeper_ ? keeper_->finished() : shards_.all_committed(last))) return;
  finished_ = timeline;
  out.emplace_back(decision_made{"training-finished", fmt::format("version {} on every PS shard", last)});
  out.emplace_back(to_coordinator{progress()});
  out.emplace_back(to_coordinator{protocol::training_finished{timeline, last}});
  order_evaluation(now, out);
}

std::optional<protocol::evaluate> data_dispatcher_core::evaluation_due() const {
  if (keeper_) return keeper_->evaluation_due();
  if (!config_.evaluates || !finished_ || evaluated_) return std::nullopt;
  return protocol::evaluate{shards_.statuses().begin()->second.timeline, {config_.steps}};
}

void data_dispatcher_core::order_evaluation(time_point now, data_dispatcher_actions& out) {
  if (const auto due = evaluation_due()) evaluator_.follow(*due, leases_.working(), now, out);
}

/// One with another number of sums is of no worker of this job, and would be kept in the journal.
data_dispatcher_actions data_dispatcher_core::on_evaluated(const protocol::evaluated& result,
                                                           time_point now) {
  data_dispatcher_actions out;
  if (result.metric_bits.size() != config_.metrics) return out;
  if (keeper_) {
    keeper_->on_evaluated(result, out);
    finish_when_trained(now, out);
    return out;
  }
  const auto due = evaluation_due();
  if (!due || result.version != due->version || result.timeline != due->timeline) return out;
  evaluated_ = true;
  out.emplace_back(to_coordinator{result});
  return out;
}

data_dispatcher_actions data_dispatcher_core::on_close(timeline_id timeline) {
  if (keeper_ && !keeper_->close(timeline)) return {};
  return {to_coordinator{progress()}, to_coordinator{protocol::training_closed{timeline}}};
}

// ---- timelines

data_dispatcher_actions data_dispatcher_core::on_kept(const protocol::kept& answer, time_point now) {
  data_dispatcher_actions out;
  if (keeper_) keeper_->on_kept(answer, now, out);
  return out;
}

data_dispatcher_actions data_dispatcher_core::on_journaled(std::uint64_t id, time_point now) {
  data_dispatcher_actions out;
  if (!keeper_) return out;
  keeper_->on_journaled(id, now, out);
  finish_when_trained(now, out);
  order_evaluation(now, out);
  return out;
}

data_dispatcher_actions data_dispatcher_core::on_poisoned_slot(const protocol::parked_slot& slot,
                                                               time_point now) {
  data_dispatcher_actions out;
  if (keeper_) keeper_->park(slot, now, out);
  return out;
}

} // namespace dlrun::data_dispatcher
