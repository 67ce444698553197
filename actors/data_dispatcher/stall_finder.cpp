#include "actors/data_dispatcher/stall_finder.hpp"

#include <algorithm>

namespace dlrun::data_dispatcher {

using protocol::duration;
using protocol::stall;
using protocol::stall_phase;
using protocol::time_point;

namespace {

/// A step that takes as long as steps usually do is no stall.
constexpr std::int64_t usual_steps = 3;

/// The status of who stands lowest; of several, of the first.
const protocol::shard_status& lowest_of(const shard_statuses& all) {
  return std::ranges::min_element(all, {}, [](const auto& one) { return one.second.applied; })->second;
}

} // namespace

void stall_finder::on_shard(const protocol::shard_status& status, time_point now) {
  shards_heard_[status.shard] = now;
}

void stall_finder::excuse(time_point now) {
  since_ = now;
  for (auto& [id, heard] : shards_heard_) heard = now;
}

std::optional<stall> stall_finder::look(const roles& all, time_point now) {
  if (!has_begun(all)) return std::nullopt;
  const auto& lowest = lowest_of(all.shards.statuses());
  const standing stands{lowest.timeline, lowest.applied};
  if (stands_ != stands) {
    auto over = end(now);
    stands_ = stands;
    since_ = now;
    return over;
  }
  const auto stalled_for = now - since_;
  if (lowest.applied.value >= rules_.steps || stalled_for < patience(all.shards)) return std::nullopt;
  auto found = find(all, now);
  found.version = lowest.applied;
  found.after_us = static_cast<std::uint64_t>(stalled_for.count());
  if (told_ && told_->is_same(found)) return std::nullopt;
  told_ = found;
  return found;
}

bool stall_finder::has_begun(const roles& all) {
  has_begun_ = has_begun_ || (all.shards.has_heard_all() && all.leases.size() > 0);
  return has_begun_;
}

duration stall_finder::patience(const shard_watch& shards) const {
  std::uint64_t usual_us = 0;
  for (const auto& [id, status] : shards.statuses()) usual_us = std::max(usual_us, status.step_times.p50_us);
  return std::max(rules_.patience, usual_steps * duration(static_cast<duration::rep>(usual_us)));
}

std::optional<stall> stall_finder::end(time_point now) {
  if (!told_) return std::nullopt;
  auto over = *std::exchange(told_, std::nullopt);
  over.is_over = true;
  over.after_us = static_cast<std::uint64_t>((now - since_).count());
  return over;
}

// ---- whom it waits for

/// Who is not there comes first, then who lacks a gradient: the others may wait for its norm.
stall stall_finder::find(const roles& all, time_point now) const {
  const auto& statuses = all.shards.statuses();
  const auto version = lowest_of(statuses).applied;
  for (const auto& [id, status] : statuses) {
    const auto phase = all.shards.is_gone(id) ? stall_phase::gone : stall_phase::silent;
    if (phase == stall_phase::gone || now - shards_heard_.at(id) > rules_.silent_after)
      return {.role = protocol::ps_shard_role(id), .incarnation = status.self.incarnation, .phase = phase};
  }
  for (const auto& [id, status] : statuses) {
    if (status.applied != version) continue;
    if (const auto slot = first_missing(status)) return blame_worker(status, *slot, all, now);
  }
  return blame_shard(lowest_of(statuses), all);
}

std::optional<slot_id> stall_finder::first_missing(const protocol::shard_status& shard) const {
  const auto step = step_from(shard.applied);
  slot_id slot{0};
  for (const auto& run : shard.durable.held)
    if (run.step == step && run.slots.begin <= slot) slot = std::max(slot, run.slots.end);
  return slot.value < rules_.slots_of(step) ? std::optional(slot) : std::nullopt;
}

stall stall_finder::blame_worker(const protocol::shard_status& lacking, slot_id slot, const roles& all,
                                 time_point now) const {
  stall found{.has_slot = true, .slot = slot};
  const auto holder = all.leases.holder_of(slot);
  found.role = protocol::worker_role(holder ? holder->first : all.leases.first_absent());
  found.phase = stall_phase::gone;
  if (!holder) return found;
  found.incarnation = holder->second;
  const auto heard = all.workers.heard().find(holder->first);
  const bool is_known = heard != all.workers.heard().end() && heard->second.incarnation == holder->second;
  found.phase = stall_phase::silent;
  if (!is_known || now - heard->second.at > rules_.silent_after) return found;
  const auto& activity = heard->second.activity;
  found.phase = activity.phase;
  if (activity.phase == stall_phase::computing) {
    found.slot = activity.slot;
    return found;
  }
  found.has_ps_shard = true;
  found.ps_shard = activity.phase == stall_phase::pushing ? lacking.shard : activity.ps_shard;
  return found;
}

stall stall_finder::blame_shard(const protocol::shard_status& shard, const roles& all) {
  if (shard.applied >= shard.durable.may_reach) return blame_evaluator(all);
  const bool is_behind = shard.committed < shard.applied;
  return {.role = protocol::ps_shard_role(shard.shard),
          .incarnation = shard.self.incarnation,
          .phase = is_behind ? stall_phase::logging : stall_phase::updating};
}

stall stall_finder::blame_evaluator(const roles& all) {
  if (!all.evaluator)
    return {.role = protocol::worker_role(all.leases.first_absent()), .phase = stall_phase::gone};
  return {.role = protocol::worker_role(all.evaluator->first),
          .incarnation = all.evaluator->second,
          .phase = stall_phase::evaluating};
}

} // namespace dlrun::data_dispatcher
