#include "actors/data_dispatcher/data_dispatcher_core.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::data_dispatcher {
namespace {

using protocol::duration;
using protocol::make_slot_range;
using protocol::slot_range;
using protocol::time_point;

/// Weight of the newest measurement in a running mean.
constexpr double newest_weight = 0.3;

double running_mean(double before, double newest) {
  return before == 0 ? newest : before * (1 - newest_weight) + newest * newest_weight;
}

} // namespace

data_dispatcher_core::data_dispatcher_core(data_dispatcher_core_config config)
    : config_(std::move(config))
    , assignment_(config_.microbatches_per_step) {
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

// ---- workers come and go
// -----------------------------------------------------------------------------------------

data_dispatcher_actions data_dispatcher_core::on_worker_joined(worker_id worker, incarnation incarnation,
                                                               time_point now) {
  data_dispatcher_actions out;
  const auto [at, first_time] = workers_.try_emplace(worker);
  if (!first_time && at->second.incarnation >= incarnation) return out;
  at->second = live_worker{};
  at->second.incarnation = incarnation;
  at->second.heard = now;
  if (evaluator_ == worker) evaluator_.reset();
  if (keeper_) tell_keeper_of_workers(now);
  divide(now, out);
  order_evaluation_again(now, out);
  return out;
}

data_dispatcher_actions data_dispatcher_core::on_worker_lost(worker_id worker, incarnation incarnation,
                                                             time_point now) {
  data_dispatcher_actions out;
  const auto at = workers_.find(worker);
  if (at == workers_.end() || at->second.incarnation > incarnation) return out;
  const auto has = assignment_.current().find(worker);
  const auto slots =
      has == assignment_.current().end() ? slot_range{} : has->second; // none when it was silent before
  losses_.push_back({worker, at->second.incarnation, slots, now});
  workers_.erase(at);
  if (evaluator_ == worker) evaluator_.reset();
  if (keeper_) tell_keeper_of_workers(now);
  divide(now, out);
  settle_losses(now, out);
  order_evaluation_again(now, out);
  return out;
}

data_dispatcher_actions data_dispatcher_core::on_worker_status(const protocol::worker_status& status,
                                                               time_point now) {
  data_dispatcher_actions out;
  const auto at = workers_.find(status.worker);
  if (at == workers_.end() || at->second.incarnation != status.self.incarnation) return out;
  auto& worker = at->second;
  worker.heard = now;
  if (status.lease_of == config_.self)
    worker.acknowledged = std::max(worker.acknowledged, status.lease_sequence);
  measure_speed(worker, status);
  if (worker.silent) {
    worker.silent = false;
    divide(now, out);
  }
  if (!losses_.empty()) settle_losses(now, out);
  return out;
}

void data_dispatcher_core::measure_speed(live_worker& worker, const protocol::worker_status& status) {
  if (status.slots_computed <= worker.slots_computed || status.compute_us <= worker.compute_us) return;
  const auto slots = static_cast<double>(status.slots_computed - worker.slots_computed);
  const auto seconds = static_cast<double>(status.compute_us - worker.compute_us) / 1e6;
  worker.slots_per_second = running_mean(worker.slots_per_second, slots / seconds);
  worker.slots_computed = status.slots_computed;
  worker.compute_us = status.compute_us;
}

// ---- leases
// ------------------------------------------------------------------------------------------------------

/// Divides the slots among those who are heard; new leases go to those whose slots or start
/// changed.
void data_dispatcher_core::divide(time_point now, data_dispatcher_actions& out) {
  std::vector<candidate> candidates;
  for (const auto& [id, worker] : workers_)
    if (!worker.silent) candidates.push_back({id, worker.incarnation, worker.slots_per_second});
  if (candidates.empty() && !workers_.empty()) return; // nobody is heard: whoever lives goes on as before
  const auto decision = assignment_.decide(candidates);
  if (helping_) { // everybody has everything; a newcomer too
    for (auto& [id, worker] : workers_)
      if (!worker.lease)
        lease_to(id, worker, make_slot_range(0, config_.microbatches_per_step), decision.reason, now, out);
    return;
  }
  if (decision.reason.empty()) return;
  for (auto& [id, worker] : workers_) {
    const auto has = decision.slots.find(id);
    const auto slots = has == decision.slots.end() ? slot_range{} : has->second;
    if (worker.silent) continue; // it keeps what it has: what it still sends is welcome
    if (!worker.lease || worker.lease->slots != slots) lease_to(id, worker, slots, decision.reason, now, out);
  }
}

void data_dispatcher_core::lease_to(worker_id id, live_worker& worker, slot_range slots,
                                    const std::string& reason, time_point now, data_dispatcher_actions& out) {
  worker.lease = protocol::lease{config_.self, next_sequence_++, worker.incarnation, slots};
  worker.lease_sent = worker.leased_at = now;
  out.emplace_back(send_lease{id, *worker.lease, reason});
}

/// Who has no slots is not measured. Its old measure counts no more after a while, so that one bad
/// moment does not keep a worker idle for ever.
void data_dispatcher_core::forget_idle_speeds(time_point now) {
  for (auto& [id, worker] : workers_)
    if (worker.lease && worker.lease->slots.empty() && now - worker.leased_at >= config_.retry_idle_after)
      worker.slots_per_second = 0;
}

bool data_dispatcher_core::is_with_others(slot_range slots) const {
  for (auto slot = slots.begin; slot < slots.end;) {
    const auto before = slot;
    for (const auto& [id, worker] : workers_) {
      if (!worker.lease || worker.acknowledged != worker.lease->sequence || worker.silent) continue;
      const auto& held = worker.lease->slots;
      if (held.begin <= slot && slot < held.end) slot = held.end;
    }
    if (slot == before) return false;
  }
  return true;
}

void data_dispatcher_core::settle_losses(time_point now, data_dispatcher_actions& out) {
  std::erase_if(losses_, [&](const loss& one) {
    if (!is_with_others(one.slots)) return false;
    out.emplace_back(slots_redispatched{one.worker, one.incarnation, now - one.noticed});
    return true;
  });
}

// ---- progress
// ----------------------------------------------------------------------------------------------------

data_dispatcher_actions data_dispatcher_core::on_shard_status(const protocol::shard_status& status,
                                                              time_point now) {
  data_dispatcher_actions out;
  if (status.shard.value >= config_.ps_shards) return out;
  const auto [at, first_time] = shards_.try_emplace(status.shard, status);
  auto& known = at->second;
  const auto age = [](const protocol::shard_status& one) {
    return std::pair(one.self.incarnation, one.sequence);
  };
  if (!first_time && age(status) <= age(known)) return out;
  const auto newest = shard_starts_.find(status.shard);
  if (newest != shard_starts_.end() && status.self.incarnation < newest->second.incarnation) return out;
  known = status;
  report_resumed(status, out);
  for (const auto& what : status.contributions) {
    auto& newest = contributed_[what.worker];
    if (newest >= what.incarnation) continue;
    newest = what.incarnation;
    out.emplace_back(worker_contributed{what});
  }
  notice_progress(now, out);
  if (keeper_) keeper_->on_shard_status(status, now, out);
  finish_when_trained(now, out);
  return out;
}

void data_dispatcher_core::report_resumed(const protocol::shard_status& status,
                                          data_dispatcher_actions& out) {
  auto& start = shard_starts_[status.shard];
  if (start.incarnation < status.self.incarnation) start = {status.self.incarnation, std::nullopt, false};
  if (!start.first_heard || status.applied < *start.first_heard) start.first_heard = status.applied;
  if (start.resumed || status.applied <= *start.first_heard) return;
  start.resumed = true;
  out.emplace_back(ps_shard_resumed{status.shard, status.self.incarnation, status.applied});
}

data_dispatcher_actions data_dispatcher_core::on_shard_started(ps_shard_id shard, incarnation incarnation,
                                                               time_point) {
  auto& start = shard_starts_[shard];
  if (shard.value >= config_.ps_shards || start.incarnation >= incarnation) return {};
  start = {incarnation, std::nullopt, false};
  if (keeper_) keeper_->on_shard_lost(shard); // the one before
  return {};
}

data_dispatcher_actions data_dispatcher_core::on_shard_lost(ps_shard_id shard, incarnation incarnation,
                                                            time_point) {
  const auto at = shard_starts_.find(shard);
  if (at != shard_starts_.end() && at->second.incarnation > incarnation) return {};
  shard_starts_[shard] = {{incarnation.value + 1}, std::nullopt, false}; // what comes next is larger
  if (keeper_) keeper_->on_shard_lost(shard);
  return {};
}

std::optional<version_id> data_dispatcher_core::applied_everywhere() const {
  if (shards_.size() < config_.ps_shards) return std::nullopt;
  auto lowest = shards_.begin()->second.applied;
  for (const auto& [id, status] : shards_) lowest = std::min(lowest, status.applied);
  return lowest;
}

void data_dispatcher_core::notice_progress(time_point now, data_dispatcher_actions& out) {
  const auto version = applied_everywhere();
  if (!version || version == progress_) return;
  if (progress_ && *version > *progress_ && !helping_) {
    const auto seconds = protocol::to_seconds(now - progress_at_);
    step_seconds_ =
        running_mean(step_seconds_, seconds / static_cast<double>(version->value - progress_->value));
  }
  progress_ = version;
  progress_at_ = now;
  if (!helping_) return;
  helping_ = false;
  for (auto& [id, worker] : workers_) {
    const auto has = assignment_.current().find(id);
    const auto slots = has == assignment_.current().end() ? slot_range{} : has->second;
    lease_to(id, worker, slots, "the slow step is done", now, out);
  }
}

void data_dispatcher_core::help_straggler(time_point now, data_dispatcher_actions& out) {
  if (helping_ || finished_ || !progress_ || progress_->value >= config_.steps || workers_.size() < 2) return;
  if (keeper_ && keeper_->holds_at(*progress_)) { // nobody is slow, an evaluation is awaited
    progress_at_ = now;
    return;
  }
  const double open = protocol::to_seconds(now - progress_at_);
  const double least = protocol::to_seconds(config_.straggler_min);
  const double usual = step_seconds_ > 0 ? step_seconds_ : 10 * least;
  const double limit = std::max(least, config_.straggler_factor * usual);
  if (open < limit) return;
  helping_ = true;
  const auto reason =
      fmt::format("step {} is open for {:.0f} ms, usual are {:.0f} ms: everybody computes all of it",
                  *progress_, 1e3 * open, 1e3 * step_seconds_);
  for (auto& [id, worker] : workers_)
    lease_to(id, worker, make_slot_range(0, config_.microbatches_per_step), reason, now, out);
}

// ---- time
// --------------------------------------------------------------------------------------------------------

data_dispatcher_actions data_dispatcher_core::on_tick(time_point now) {
  data_dispatcher_actions out;
  if (!first_tick_) first_tick_ = now;
  notice_pause(now);
  notice_silence(now, out);
  forget_idle_speeds(now);
  divide(now, out);
  help_straggler(now, out);
  for (auto& [id, worker] : workers_) {
    if (!worker.lease || worker.silent || worker.acknowledged == worker.lease->sequence) continue;
    if (now - worker.lease_sent < config_.repeat_after) continue;
    worker.lease_sent = now;
    out.emplace_back(send_lease{id, *worker.lease, {}});
  }
  if (keeper_) {
    tell_keeper_of_workers(now);
    keeper_->on_tick(now, out);
    finish_when_trained(now, out);
  }
  order_evaluation_again(now, out);
  return out;
}

/// Who is running but has not joined this dispatcher yet may keep gradients: until it had the time
/// to, nothing is called lost.
void data_dispatcher_core::tell_keeper_of_workers(time_point now) {
  std::map<worker_id, incarnation> heard;
  for (const auto& [id, worker] : workers_)
    if (!worker.silent) heard[id] = worker.incarnation;
  const bool had_time = first_tick_ && now - *first_tick_ > config_.silent_after;
  keeper_->set_workers(std::move(heard), workers_.size() >= config_.workers || had_time);
}

/// What was sent to this process while it was paused lies in its mailbox still: nobody is late
/// because of it.
void data_dispatcher_core::notice_pause(time_point now) {
  const auto gap = last_tick_ ? now - *last_tick_ : duration::zero();
  last_tick_ = now;
  if (gap < config_.silent_after / 2) return;
  for (auto& [id, worker] : workers_) worker.heard = std::max(worker.heard, now);
  progress_at_ = std::max(progress_at_, now);
}

void data_dispatcher_core::notice_silence(time_point now, data_dispatcher_actions& out) {
  bool changed = false;
  for (auto& [id, worker] : workers_) {
    if (worker.silent || now - worker.heard <= config_.silent_after) continue;
    worker.silent = true;
    changed = true;
    if (evaluator_ == id) evaluator_.reset();
  }
  if (changed) divide(now, out);
}

// ---- the end
// -----------------------------------------------------------------------------------------------------

bool data_dispatcher_core::is_trained() const {
  if (shards_.size() < config_.ps_shards) return false;
  const auto timeline = shards_.begin()->second.timeline;
  return std::all_of(shards_.begin(), shards_.end(), [&](const auto& entry) {
    const auto& status = entry.second;
    return status.timeline == timeline && status.applied.value == config_.steps &&
           status.committed.value == config_.steps;
  });
}

void data_dispatcher_core::finish_when_trained(time_point now, data_dispatcher_actions& out) {
  const auto timeline = keeper_ ? keeper_->timeline() : timeline_id{};
  if (finished_ == timeline || !(keeper_ ? keeper_->finished() : is_trained())) return;
  finished_ = timeline;
  const auto last = keeper_ ? keeper_->last_version() : version_id{config_.steps};
  out.emplace_back(training_finished{timeline, last});
  order_evaluation_again(now, out);
}

std::optional<protocol::evaluate> data_dispatcher_core::evaluation_due() const {
  if (keeper_) return keeper_->evaluation_due();
  if (!config_.evaluates || !finished_ || evaluation_) return std::nullopt;
  return protocol::evaluate{shards_.begin()->second.timeline, {config_.steps}};
}

/// R17: to one worker that is heard; to another when it is not any more.
void data_dispatcher_core::order_evaluation_again(time_point now, data_dispatcher_actions& out) {
  const auto due = evaluation_due();
  if (!due) return;
  const bool told = evaluator_ && evaluation_ordered_ == due;
  if (told && now - evaluation_sent_ < config_.repeat_after) return;
  if (!evaluator_) {
    const auto heard = std::find_if(workers_.begin(), workers_.end(),
                                    [](const auto& entry) { return !entry.second.silent; });
    if (heard == workers_.end()) return;
    evaluator_ = heard->first;
  }
  evaluation_sent_ = now;
  evaluation_ordered_ = due;
  out.emplace_back(order_evaluation{*evaluator_, *due});
}

data_dispatcher_actions data_dispatcher_core::on_evaluated(const protocol::evaluated& result,
                                                           time_point now) {
  data_dispatcher_actions out;
  if (keeper_) {
    keeper_->on_evaluated(result, out);
    finish_when_trained(now, out);
    return out;
  }
  const auto due = evaluation_due();
  if (!due || result.version != due->version || result.timeline != due->timeline) return out;
  evaluation_ = result;
  out.emplace_back(evaluation_finished{result});
  return out;
}

// ---- snapshots and rewinds: the keeper's
// -----------------------------------------------------------------------------

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
  order_evaluation_again(now, out);
  return out;
}

data_dispatcher_actions data_dispatcher_core::on_poisoned_slot(const protocol::parked_slot& slot,
                                                               time_point now) {
  data_dispatcher_actions out;
  if (keeper_) keeper_->park(slot, now, out);
  return out;
}

data_dispatcher_actions data_dispatcher_core::on_close(timeline_id timeline, time_point) {
  if (keeper_ && !keeper_->close(timeline)) return {};
  return {training_closed{timeline}};
}

data_dispatcher_actions data_dispatcher_core::on_go_back(const protocol::go_back& wanted, time_point now) {
  data_dispatcher_actions out;
  if (keeper_) keeper_->go_back(wanted, now, out);
  return out;
}

} // namespace dlrun::data_dispatcher
