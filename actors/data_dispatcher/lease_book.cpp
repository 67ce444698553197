#include "actors/data_dispatcher/lease_book.hpp"

#include "actors/data_dispatcher/running_mean.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace dlrun::data_dispatcher {

using protocol::make_slot_range;
using protocol::slot_range;
using protocol::time_point;

lease_book::lease_book(lease_rules rules)
    : rules_(rules)
    , assignment_(rules.slots) {}

// ---- workers come and go

bool lease_book::join(worker_id worker, incarnation incarnation, time_point now,
                      data_dispatcher_actions& out) {
  const auto [at, first_time] = workers_.try_emplace(worker);
  if (!first_time && at->second.incarnation >= incarnation) return false;
  at->second = live_worker{};
  at->second.incarnation = incarnation;
  at->second.heard = now;
  divide(now, out);
  return true;
}

bool lease_book::lose(worker_id worker, incarnation incarnation, time_point now,
                      data_dispatcher_actions& out) {
  const auto at = workers_.find(worker);
  if (at == workers_.end() || at->second.incarnation > incarnation) return false;
  losses_.push_back({worker, at->second.incarnation, share_of(worker), now}); // none if it was silent before
  workers_.erase(at);
  divide(now, out);
  settle_losses(now, out);
  return true;
}

void lease_book::on_status(const protocol::worker_status& status, time_point now,
                           data_dispatcher_actions& out) {
  const auto at = workers_.find(status.worker);
  if (at == workers_.end() || at->second.incarnation != status.self.incarnation) return;
  auto& worker = at->second;
  worker.heard = now;
  if (status.lease_of == rules_.dispatcher)
    worker.acknowledged = std::max(worker.acknowledged, status.lease_sequence);
  measure_speed(worker, status);
  if (std::exchange(worker.silent, false)) divide(now, out);
  if (!losses_.empty()) settle_losses(now, out);
}

void lease_book::measure_speed(live_worker& worker, const protocol::worker_status& status) {
  if (status.slots_computed <= worker.slots_computed || status.compute_us <= worker.compute_us) return;
  const auto slots = static_cast<double>(status.slots_computed - worker.slots_computed);
  const auto seconds = static_cast<double>(status.compute_us - worker.compute_us) / 1e6;
  worker.slots_per_second = running_mean(worker.slots_per_second, slots / seconds);
  worker.slots_computed = status.slots_computed;
  worker.compute_us = status.compute_us;
}

std::map<worker_id, incarnation> lease_book::heard() const {
  std::map<worker_id, dlrun::incarnation> all;
  for (const auto& [id, worker] : workers_)
    if (!worker.silent) all[id] = worker.incarnation;
  return all;
}

// ---- leases

/// Divides the slots among those who are heard; new leases go to those whose slots or start
/// changed.
void lease_book::divide(time_point now, data_dispatcher_actions& out) {
  std::vector<candidate> candidates;
  for (const auto& [id, worker] : workers_)
    if (!worker.silent) candidates.push_back({id, worker.incarnation, worker.slots_per_second});
  if (candidates.empty() && !workers_.empty()) return; // nobody is heard: whoever lives goes on as before
  const auto decision = assignment_.decide(candidates);
  if (helping_) { // everybody has everything; a newcomer too
    for (auto& [id, worker] : workers_)
      if (!worker.lease) lease_to(id, worker, make_slot_range(0, rules_.slots), decision.reason, now, out);
    return;
  }
  if (decision.reason.empty()) return;
  for (auto& [id, worker] : workers_) {
    if (worker.silent) continue; // it keeps what it has: what it still sends is welcome
    const auto slots = share_of(id);
    if (!worker.lease || worker.lease->slots != slots) lease_to(id, worker, slots, decision.reason, now, out);
  }
}

slot_range lease_book::share_of(worker_id worker) const {
  const auto has = assignment_.current().find(worker);
  return has == assignment_.current().end() ? slot_range{} : has->second;
}

void lease_book::lease_to(worker_id id, live_worker& worker, slot_range slots, const std::string& reason,
                          time_point now, data_dispatcher_actions& out) {
  worker.lease = protocol::lease{rules_.dispatcher, next_sequence_++, worker.incarnation, slots};
  worker.leased_at = now;
  worker.unsaid_reason = reason;
  worker.sent.reset();
  if (!withheld_) send(id, worker, now, out);
}

void lease_book::send(worker_id id, live_worker& worker, time_point now, data_dispatcher_actions& out) {
  const auto& lease = *worker.lease;
  if (const auto reason = std::exchange(worker.unsaid_reason, {}); !reason.empty())
    out.emplace_back(
        decision_made{"lease", fmt::format("worker {} incarnation {} slots [{}, {}): {}", id, lease.worker,
                                           lease.slots.begin, lease.slots.end, reason)});
  worker.sent = now;
  out.emplace_back(to_worker{id, lease});
}

void lease_book::repeat(time_point now, data_dispatcher_actions& out) {
  if (withheld_) return;
  for (auto& [id, worker] : workers_) {
    if (!worker.lease || worker.silent || worker.acknowledged == worker.lease->sequence) continue;
    if (!worker.sent || now - *worker.sent >= rules_.repeat_after) send(id, worker, now, out);
  }
}

// ---- time

void lease_book::renew(time_point now, data_dispatcher_actions& out) {
  notice_silence(now, out);
  forget_idle_speeds(now);
  divide(now, out);
}

void lease_book::notice_silence(time_point now, data_dispatcher_actions& out) {
  bool changed = false;
  for (auto& [id, worker] : workers_) {
    if (worker.silent || now - worker.heard <= rules_.silent_after) continue;
    worker.silent = true;
    changed = true;
  }
  if (changed) divide(now, out);
}

void lease_book::excuse_silence(time_point now) {
  for (auto& [id, worker] : workers_) worker.heard = std::max(worker.heard, now);
}

/// Who has no slots is not measured. Its old measure counts no more after a while, so that one bad
/// moment does not keep a worker idle for ever.
void lease_book::forget_idle_speeds(time_point now) {
  for (auto& [id, worker] : workers_)
    if (worker.lease && worker.lease->slots.empty() && now - worker.leased_at >= rules_.retry_idle_after)
      worker.slots_per_second = 0;
}

void lease_book::help(const std::string& reason, time_point now, data_dispatcher_actions& out) {
  helping_ = true;
  for (auto& [id, worker] : workers_)
    lease_to(id, worker, make_slot_range(0, rules_.slots), reason, now, out);
}

void lease_book::end_help(time_point now, data_dispatcher_actions& out) {
  if (!std::exchange(helping_, false)) return;
  for (auto& [id, worker] : workers_) lease_to(id, worker, share_of(id), "the slow step is done", now, out);
}

// ---- lost slots

bool lease_book::is_with_others(slot_range slots) const {
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

void lease_book::settle_losses(time_point now, data_dispatcher_actions& out) {
  std::erase_if(losses_, [&](const loss& one) {
    if (!is_with_others(one.slots)) return false;
    const auto after = static_cast<std::uint64_t>((now - one.noticed).count());
    out.emplace_back(
        decision_made{"slots-redispatched", fmt::format("of worker {} incarnation {} after {} us", one.worker,
                                                        one.incarnation, after)});
    out.emplace_back(to_coordinator{protocol::slots_redispatched{one.worker, one.incarnation, after}});
    return true;
  });
}

} // namespace dlrun::data_dispatcher
