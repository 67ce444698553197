#include "actors/data_dispatcher/lease_book.hpp"

#include <algorithm>
#include <array>
#include <fmt/compile.h>
#include <string_view>
#include <utility>

namespace dlrun::data_dispatcher {

using protocol::slot_range;
using protocol::time_point;

namespace {

/// Of who is on trial: somebody else has it too.
constexpr auto trial_slots = protocol::make_slot_range(0, 1);

/// One for each worker, and all at once when slots are divided anew.
std::string describe(worker_id worker, const protocol::lease& lease, const std::string& reason) {
  std::array<char, 96> words{}; // 83 with the largest numbers
  const auto* end =
      fmt::format_to(words.data(), FMT_COMPILE("worker {} incarnation {} slots [{}, {}): "), worker.value,
                     lease.worker.value, lease.slots.begin.value, lease.slots.end.value);
  const std::string_view about{words.data(), static_cast<std::size_t>(end - words.data())};
  std::string text;
  text.reserve(about.size() + reason.size());
  return text.append(about).append(reason);
}

} // namespace

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
  at->second.on_trial = somebody_works();
  at->second.trial_ends = now;
  ++heard_changes_;
  divide(now, out);
  return true;
}

bool lease_book::lose(worker_id worker, incarnation incarnation, time_point now,
                      data_dispatcher_actions& out) {
  const auto at = workers_.find(worker);
  if (at == workers_.end() || at->second.incarnation > incarnation) return false;
  if (!at->second.leaving) // of one that was silent there are none
    losses_.push_back({worker, at->second.incarnation, share_of(worker), now});
  workers_.erase(at);
  ++heard_changes_;
  divide(now, out);
  settle_losses(now, out, [worker](const loss& one) { return one.worker == worker; });
  return true;
}

bool lease_book::on_status(const protocol::worker_status& status, time_point now,
                           data_dispatcher_actions& out) {
  const auto at = workers_.find(status.worker);
  if (at == workers_.end() || at->second.incarnation != status.self.incarnation) return false;
  auto& worker = at->second;
  const auto unheard = now - std::exchange(worker.heard, now);
  const auto acknowledged_before = worker.acknowledged;
  if (status.lease_of == rules_.dispatcher)
    worker.acknowledged = std::max(worker.acknowledged, status.lease_sequence);
  const bool is_new = worker.speed.slots_computed() == 0;
  const bool has_shown =
      worker.on_trial && status.slots_computed > worker.tried_from && now >= worker.trial_ends;
  if (has_shown) worker.on_trial = false;
  if (has_shown && is_new)
    worker.speed.begin(status);
  else
    worker.speed.measure(status, unheard, rules_.silent_after);
  const bool speaks_again = std::exchange(worker.silent, false);
  const bool begins_to_leave = status.leaving && !std::exchange(worker.leaving, true);
  if (speaks_again) ++heard_changes_;
  if (speaks_again || begins_to_leave || has_shown) divide(now, out);
  if (speaks_again || worker.acknowledged != acknowledged_before) settle_losses(worker, now, out);
  return begins_to_leave;
}

std::map<worker_id, incarnation> lease_book::heard() const {
  std::map<worker_id, dlrun::incarnation> all;
  for (const auto& [id, worker] : workers_)
    if (!worker.silent) all.emplace_hint(all.end(), id, worker.incarnation);
  return all;
}

std::map<worker_id, incarnation> lease_book::working() const {
  std::map<worker_id, dlrun::incarnation> all;
  for (const auto& [id, worker] : workers_)
    if (worker.takes_work()) all.emplace_hint(all.end(), id, worker.incarnation);
  return all;
}

std::optional<std::pair<worker_id, incarnation>> lease_book::holder_of(slot_id slot) const {
  for (const auto& [id, slots] : assignment_.current())
    if (const auto at = workers_.find(id); at != workers_.end() && slots.begin <= slot && slot < slots.end)
      return std::pair(id, at->second.incarnation);
  return std::nullopt;
}

worker_id lease_book::first_absent() const {
  worker_id id{0};
  while (workers_.contains(id)) ++id.value;
  return id;
}

// ---- leases

bool lease_book::somebody_works() const {
  return std::ranges::any_of(workers_, [](const auto& entry) {
    const auto& worker = entry.second;
    return worker.takes_work() && !worker.on_trial && worker.speed.slots_computed() > 0;
  });
}

/// Those who are on trial too, when there are no others.
std::vector<candidate> lease_book::candidates(time_point now) {
  std::vector<candidate> all;
  all.reserve(workers_.size());
  const auto add = [&](bool on_trial) {
    for (auto& [id, worker] : workers_) {
      if (!worker.takes_work() || worker.on_trial != on_trial) continue;
      worker.on_trial = false;
      all.push_back(candidate_of(id, worker, now));
    }
  };
  add(false);
  if (all.empty()) add(true);
  return all;
}

candidate lease_book::candidate_of(worker_id id, const live_worker& worker, time_point now) const {
  return {.worker = id,
          .incarnation = worker.incarnation,
          .slots_per_second = worker.speed.slots_per_second(),
          .at_most = worker.speed.at_most(now - worker.heard, rules_.silent_after)};
}

/// Divides the slots among those who are heard; new leases go to those whose slots or start
/// changed.
void lease_book::divide(time_point now, data_dispatcher_actions& out) {
  auto takers = candidates(now);
  if (takers.empty() && !workers_.empty()) return; // nobody is heard: whoever lives goes on as before
  const auto decision = assignment_.decide(std::move(takers));
  auto share = decision.slots.begin(); // both are in the order of the workers
  for (auto& [id, worker] : workers_) {
    if (!worker.takes_work()) continue; // it keeps what it has: what it still sends is welcome
    if (worker.lease && decision.reason.empty()) continue;
    while (share != decision.slots.end() && share->first < id) ++share;
    const bool has_share = share != decision.slots.end() && share->first == id;
    const auto slots = worker.on_trial ? trial_slots : has_share ? share->second : slot_range{};
    if (worker.lease && worker.lease->slots == slots) continue;
    lease_to(id, worker, slots, worker.on_trial ? "it is new, others have this slot too" : decision.reason,
             now, out);
  }
}

slot_range lease_book::share_of(worker_id worker) const {
  const auto has = assignment_.current().find(worker);
  return has == assignment_.current().end() ? slot_range{} : has->second;
}

void lease_book::lease_to(worker_id id, live_worker& worker, slot_range slots, const std::string& reason,
                          time_point now, data_dispatcher_actions& out) {
  worker.lease =
      protocol::lease{rules_.dispatcher, next_sequence_++, worker.incarnation, slots, worker.on_trial};
  worker.leased_at = now;
  worker.sent.reset();
  if (withheld_) {
    worker.unsaid_reason = reason;
    return;
  }
  worker.unsaid_reason.clear();
  if (!reason.empty()) out.emplace_back(decision_made{"lease", describe(id, *worker.lease, reason)});
  send(id, worker, now, out);
}

void lease_book::send(worker_id id, live_worker& worker, time_point now, data_dispatcher_actions& out) {
  worker.sent = now;
  out.emplace_back(to_worker{id, *worker.lease});
}

void lease_book::repeat(time_point now, data_dispatcher_actions& out) {
  if (withheld_) return;
  for (auto& [id, worker] : workers_) {
    if (!worker.lease || !worker.takes_work() || worker.acknowledged == worker.lease->sequence) continue;
    if (worker.sent && now - *worker.sent < rules_.repeat_after) continue;
    if (const auto reason = std::exchange(worker.unsaid_reason, {}); !reason.empty())
      out.emplace_back(decision_made{"lease", describe(id, *worker.lease, reason)});
    send(id, worker, now, out);
  }
}

// ---- time

void lease_book::renew(time_point now, data_dispatcher_actions& out) {
  notice_silence(now);
  divide(now, out);
  try_idle_ones(now, out);
}

void lease_book::notice_silence(time_point now) {
  bool changed = false;
  for (auto& [id, worker] : workers_) {
    if (worker.silent || now - worker.heard <= rules_.silent_after) continue;
    worker.silent = true;
    changed = true;
  }
  if (changed) ++heard_changes_;
}

void lease_book::excuse_silence(time_point now) {
  for (auto& [id, worker] : workers_) worker.heard = std::max(worker.heard, now);
}

/// Who has no slots is not measured. So that one bad moment does not keep a worker idle for ever it
/// tries a slot that others have too. Who is more than half as fast as the fastest has no slots
/// because there are not enough for all, and tries nothing.
void lease_book::try_idle_ones(time_point now, data_dispatcher_actions& out) {
  std::optional<double> fastest;
  for (auto& [id, worker] : workers_) {
    if (!worker.takes_work() || worker.on_trial || !worker.lease || !worker.lease->slots.empty() ||
        now - worker.leased_at < rules_.retry_idle_after)
      continue;
    if (!fastest) fastest = fastest_with_slots();
    if (2 * worker.speed.slots_per_second() >= *fastest) continue;
    worker.on_trial = true;
    worker.trial_ends = now + rules_.retry_idle_after;
    worker.tried_from = worker.speed.slots_computed();
    lease_to(id, worker, trial_slots, "it was slow, others have this slot too", now, out);
  }
}

/// Slots per second.
double lease_book::fastest_with_slots() const {
  double fastest = 0;
  for (const auto& [id, worker] : workers_)
    if (!share_of(id).empty()) fastest = std::max(fastest, worker.speed.slots_per_second());
  return fastest;
}

// ---- lost slots

bool lease_book::is_with_others(slot_range slots) const {
  for (auto slot = slots.begin; slot < slots.end;) {
    const auto before = slot;
    for (const auto& [id, worker] : workers_) {
      if (!worker.lease || worker.acknowledged != worker.lease->sequence || !worker.takes_work()) continue;
      const auto& held = worker.lease->slots;
      if (held.begin <= slot && slot < held.end) slot = held.end;
    }
    if (slot == before) return false;
  }
  return true;
}

/// By a worker that has acknowledged its lease, or is heard again, only losses can be with others
/// that its slots are part of.
void lease_book::settle_losses(const live_worker& worker, time_point now, data_dispatcher_actions& out) {
  if (!worker.lease || worker.acknowledged != worker.lease->sequence) return;
  settle_losses(now, out, [&](const loss& one) { return one.slots.overlaps(worker.lease->slots); });
}

/// To look at one loss takes a look at each worker: of many losses those that may have changed.
template <class MayBe>
void lease_book::settle_losses(time_point now, data_dispatcher_actions& out, MayBe may_be) {
  std::erase_if(losses_, [&](const loss& one) {
    if (!may_be(one) || !is_with_others(one.slots)) return false;
    const auto after = static_cast<std::uint64_t>((now - one.noticed).count());
    out.emplace_back(
        decision_made{"slots-redispatched", fmt::format("of worker {} incarnation {} after {} us", one.worker,
                                                        one.incarnation, after)});
    out.emplace_back(to_coordinator{protocol::slots_redispatched{one.worker, one.incarnation, after}});
    return true;
  });
}

} // namespace dlrun::data_dispatcher
