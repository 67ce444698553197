#include "actors/worker/worker_core.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::worker {

using protocol::is_planted;
using protocol::planted_bug;
using protocol::reduction_tree;
using protocol::slot_range;
using protocol::time_point;

worker_core::worker_core(worker_core_config config)
    : config_(std::move(config)) {
  DLRUN_CHECK(config_.ps_shards >= 1, "a job has at least one PS shard");
  DLRUN_CHECK(config_.slots_of != nullptr, "a worker must know how many slots a step has");
}

// ---- what it hears
// -----------------------------------------------------------------------------------------------

worker_actions worker_core::on_shard_state(const protocol::shard_state& state, time_point now) {
  if (fenced_ || state.shard.value >= config_.ps_shards) return {};
  worker_actions out;
  if (!adopt(state, out)) return out;
  auto [at, first_time] = known_.try_emplace(state.shard);
  auto& shard = at->second;
  if (!first_time && state.incarnation < shard.shard_incarnation) return out;
  const auto before = shard.applied;
  const bool restarted = first_time || state.incarnation > shard.shard_incarnation;
  if (restarted) {
    const auto highest = shard.highest_ever;
    shard = known_shard{};
    shard.shard_incarnation = state.incarnation;
    shard.highest_ever = highest;
  }
  if (state.applied >= shard.applied) shard.serves_previous = state.serves_previous;
  if (restarted || state.applied > before) shard.refused.clear();
  shard.applied = std::max(shard.applied, state.applied);
  shard.committed = std::max(shard.committed, state.committed);
  shard.highest_ever = std::max(shard.highest_ever, shard.applied);
  if (is_planted(config_.bug, planted_bug::max_version)) shard.applied = shard.highest_ever;
  if (is_planted(config_.bug, planted_bug::ack_forever))
    for (const auto& key : kept_)
      if (key.first < step_from(shard.applied)) acknowledged_.emplace(state.shard, key);
  shard.heard = now;
  if (restarted)
    push_from(state.shard, step_from(shard.applied), now, out);
  else if (shard.applied > before) // steps that it refused as too far ahead and takes now
    push_from(state.shard, {before.value + config_.early_publish_bound + 2}, now, out);
  act(out);
  return out;
}

worker_actions worker_core::on_part(ps_shard_id shard, incarnation shard_incarnation, timeline_id timeline,
                                    version_id version, bool ok, time_point now) {
  const auto asked = fetching_.find(shard);
  if (fenced_ || asked == fetching_.end() ||
      asked->second != fetch_part{shard, shard_incarnation, timeline, version})
    return {};
  fetching_.erase(asked);
  worker_actions out;
  const auto at = known_.find(shard);
  if (timeline == timeline_ && at != known_.end() && at->second.shard_incarnation == shard_incarnation) {
    if (ok) {
      at->second.parts.insert(version);
    } else {
      at->second.refused.insert(version);
      at->second.refused_at = now;
      pull(shard, now, out);
    }
  }
  act(out);
  return out;
}

worker_actions worker_core::on_computed(timeline_id timeline, step_id step, slot_range slots,
                                        time_point now) {
  if (fenced_ || !computing_ || computing_->timeline != timeline || computing_->step != step ||
      computing_->slots != slots)
    return {};
  computing_.reset();
  worker_actions out;
  if (timeline == timeline_ && !is_safe_everywhere(step)) {
    const kept_key key{step, slots};
    kept_.insert(key);
    for (auto& [id, shard] : known_) {
      if (shard.applied > version_before(step)) continue;
      out.emplace_back(push_gradient{id, step, slots});
      shard.pushed = now;
    }
  }
  act(out);
  return out;
}

worker_actions worker_core::on_overwritten(timeline_id timeline, step_id step, slot_range slots) {
  if (fenced_ || !computing_ || computing_->timeline != timeline || computing_->step != step ||
      computing_->slots != slots)
    return {};
  computing_.reset();
  if (timeline == timeline_)
    for (auto& [id, shard] : known_) shard.parts.erase(version_before(step));
  worker_actions out;
  act(out);
  return out;
}

worker_actions worker_core::on_lease(const protocol::lease& lease, time_point) {
  if (fenced_ || lease.worker != config_.fence.incarnation) return {};
  if (lease_ &&
      std::pair(lease.dispatcher, lease.sequence) <= std::pair(lease_->dispatcher, lease_->sequence))
    return {};
  lease_ = lease;
  worker_actions out;
  act(out);
  return out;
}

worker_actions worker_core::on_directory(const protocol::directory& directory, time_point) {
  if (const std::pair from{directory.coordinator, directory.sequence}; from >= suspects_from_) {
    suspects_from_ = from;
    suspects_ = directory.suspects;
  }
  for (const auto& entry : directory.entries)
    if (entry.role == protocol::worker_role(config_.self)) return exit_if_older(entry.incarnation);
  return {};
}

worker_actions worker_core::on_fenced(const protocol::fenced& message, time_point) {
  if (message.role != protocol::worker_role(config_.self)) return {};
  return exit_if_older(message.newest);
}

worker_actions worker_core::on_tick(time_point now) {
  if (fenced_) return {};
  worker_actions out;
  for (std::uint32_t index = 0; index < config_.ps_shards; ++index) repeat({index}, now, out);
  act(out);
  return out;
}

// ---- what it does
// ------------------------------------------------------------------------------------------------

/// False when what was heard belongs to an older timeline (R2).
bool worker_core::adopt(const protocol::shard_state& state, worker_actions& out) {
  if (state.timeline < timeline_) return is_planted(config_.bug, planted_bug::no_timeline_w);
  if (state.timeline > timeline_) {
    timeline_ = state.timeline;
    known_.clear();
    kept_.clear();
    acknowledged_.clear();
    out.emplace_back(discard_all{state.timeline});
  }
  if (known_.empty() || is_planted(config_.bug, planted_bug::park_in_place)) parked_ = state.parked;
  return true;
}

void worker_core::act(worker_actions& out) {
  if (!everything_known()) return;
  forget(out);
  drop_parts();
  fetch(out);
  compute(out);
}

/// R10: what every shard has committed, and what is beyond the bound: there the highest step first.
void worker_core::forget(worker_actions& out) {
  while (!kept_.empty() && is_safe_everywhere(kept_.begin()->first)) forget_key(kept_.begin(), out);
  auto next = kept_.begin();
  for (std::uint32_t steps = 0; next != kept_.end() && steps < config_.early_publish_bound + 2; ++steps)
    next = kept_.lower_bound({{next->first.value + 1}, slot_range{}});
  while (next != kept_.end()) forget_key(next++, out);
}

void worker_core::forget_key(std::set<kept_key>::iterator key, worker_actions& out) {
  out.emplace_back(forget_gradient{key->first, key->second});
  if (is_planted(config_.bug, planted_bug::ack_forever))
    for (const auto& [id, shard] : known_) acknowledged_.erase({id, *key});
  kept_.erase(key);
}

void worker_core::drop_parts() {
  if (is_planted(config_.bug, planted_bug::mix_versions)) return;
  const auto lowest = version_before(*open_step());
  const auto highest = version_after(*open_step());
  for (auto& [id, shard] : known_)
    std::erase_if(shard.parts, [&](version_id held) { return held < lowest || held > highest; });
}

void worker_core::fetch(worker_actions& out) {
  const auto open = *open_step();
  for (const auto wanted : {version_before(open), version_after(open)}) {
    if (!part_is_needed(wanted) || is_read_by_computation(wanted)) continue;
    for (auto& [id, shard] : known_) {
      const bool served = shard.applied == wanted ||
                          (shard.applied == version_after(step_from(wanted)) && shard.serves_previous);
      if (!served || shard.refused.contains(wanted) || shard.parts.contains(wanted) || fetching_.contains(id))
        continue;
      const fetch_part order{id, shard.shard_incarnation, timeline_, wanted};
      fetching_.emplace(id, order);
      out.emplace_back(order);
    }
  }
}

void worker_core::compute(worker_actions& out) {
  const auto step = *open_step();
  if (computing_ || step.value >= config_.steps) return;
  const auto slots = next_missing(step);
  if (!slots) return;
  const bool mixes = is_planted(config_.bug, planted_bug::mix_versions);
  for (const auto& [id, shard] : known_)
    if (mixes ? shard.parts.empty() : !shard.parts.contains(version_before(step))) return; // R6
  computing_ = order_of(step, *slots);
  out.emplace_back(*computing_);
}

compute_gradient worker_core::order_of(step_id step, slot_range slots) const {
  compute_gradient order{timeline_, step, slots, parked_in(step, slots), suspects_in(step, slots)};
  const step_id next{step.value + 1};
  for (const auto& one : parked_in(next, slots)) order.not_ahead.push_back(one.slot);
  for (const auto& one : suspects_in(next, slots)) order.not_ahead.push_back(one.slot);
  return order;
}

/// R9: everything kept of `first` and later that the shard has not applied.
void worker_core::push_from(ps_shard_id id, step_id first, time_point now, worker_actions& out) {
  auto& shard = known_.at(id);
  for (auto key = kept_.lower_bound({std::max(first, step_from(shard.applied)), slot_range{}});
       key != kept_.end(); ++key) {
    if (is_planted(config_.bug, planted_bug::ack_forever) && acknowledged_.contains({id, *key})) continue;
    out.emplace_back(push_gradient{id, key->first, key->second});
    shard.pushed = now;
  }
}

void worker_core::repeat(ps_shard_id id, time_point now, worker_actions& out) {
  const auto at = known_.find(id);
  if (at == known_.end()) return pull(id, now, out);
  auto& shard = at->second;
  if (!shard.refused.empty() && now - shard.refused_at >= config_.repeat_after) shard.refused.clear();
  const auto before = out.size();
  if (now - shard.pushed >= config_.repeat_after) push_from(id, step_from(shard.applied), now, out);
  const bool over = config_.durability == protocol::durability::off && shard.applied.value >= config_.steps;
  if (out.size() == before && !over && now - shard.heard >= config_.repeat_after) pull(id, now, out);
}

void worker_core::pull(ps_shard_id id, time_point now, worker_actions& out) {
  const auto [at, first_time] = pulled_.try_emplace(id, now);
  if (!first_time && now - at->second < config_.repeat_after) return;
  at->second = now;
  out.emplace_back(pull_state{id});
}

worker_actions worker_core::on_probe(const protocol::probe& question, time_point) {
  if (fenced_) return {};
  protocol::kept answer{config_.self, config_.fence, timeline_, question.id, {}};
  auto& runs = answer.slots;
  for (const auto& [step, slots] : kept_) {
    if (!runs.empty() && runs.back().step == step && runs.back().slots.end == slots.begin)
      runs.back().slots.end = slots.end;
    else if (runs.size() < protocol::reported_slots_max)
      runs.push_back({step, slots});
  }
  return {send_kept{std::move(answer)}};
}

worker_actions worker_core::exit_if_older(incarnation newest) {
  if (fenced_ || newest <= config_.fence.incarnation) return {};
  fenced_ = true;
  return {exit_fenced{newest}};
}

// ---- what it knows
// -----------------------------------------------------------------------------------------------

std::optional<step_id> worker_core::open_step() const {
  if (!everything_known()) return std::nullopt;
  const auto lowest = std::min_element(known_.begin(), known_.end(), [](const auto& left, const auto& right) {
    return left.second.applied < right.second.applied;
  });
  return step_from(lowest->second.applied);
}

bool worker_core::trained() const {
  const auto step = open_step();
  return step && step->value >= config_.steps;
}

bool worker_core::has_parts(version_id version) const {
  return everything_known() && std::all_of(known_.begin(), known_.end(), [&](const auto& entry) {
           return entry.second.parts.contains(version);
         });
}

/// R10: nobody will ask for the gradient of `step` again, as far as its shard knows. With
/// `snapshots` what is between two of them is computed again, so that a gradient is of no use when
/// it is applied.
bool worker_core::is_safe_everywhere(step_id step) const {
  if (!everything_known()) return false;
  const bool when_applied = config_.durability == protocol::durability::snapshots ||
                            is_planted(config_.bug, planted_bug::drop_on_publish);
  const auto is_safe = [&](const auto& entry) {
    return (when_applied ? entry.second.applied : entry.second.committed) > version_before(step);
  };
  if (is_planted(config_.bug, planted_bug::drop_own_commit))
    return std::any_of(known_.begin(), known_.end(), is_safe);
  return std::all_of(known_.begin(), known_.end(), is_safe);
}

protocol::parked_slots_list worker_core::parked_in(step_id step, slot_range slots) const {
  protocol::parked_slots_list all;
  for (const auto& parked : parked_)
    if (parked.step == step && slots.begin <= parked.slot && parked.slot < slots.end) all.push_back(parked);
  return all;
}

std::vector<protocol::suspect_slot> worker_core::suspects_in(step_id step, slot_range slots) const {
  std::vector<protocol::suspect_slot> all;
  for (const auto& one : suspects_)
    if (one.step == step && slots.begin <= one.slot && one.slot < slots.end) all.push_back(one);
  return all;
}

bool worker_core::part_is_needed(version_id version) const {
  if (version.value >= config_.steps) return version.value == config_.steps;
  return next_missing(step_from(version)).has_value();
}

/// Whether the buffer that `version` goes to is being computed from; also for the same version,
/// which is fetched again when its PS shard was restarted: a copy that fails half-way leaves
/// anything in it.
bool worker_core::is_read_by_computation(version_id version) const {
  return computing_ && computing_->step.value % 2 == version.value % 2;
}

bool worker_core::keeps_something_in(step_id step, slot_range slots) const {
  const auto next = kept_.lower_bound({step, slot_range{slots.begin, {}}});
  if (next != kept_.end() && next->first == step && next->second.begin < slots.end) return true;
  return next != kept_.begin() && std::prev(next)->first == step && std::prev(next)->second.end > slots.begin;
}

/// The next leased node of `step` of which nothing is kept. What is parked in whole the shards fill
/// in themselves (R18).
std::optional<slot_range> worker_core::next_missing(step_id step) const {
  if (!lease_) return std::nullopt;
  for (const auto& node : reduction_tree(config_.slots_of(step)).cover(lease_->slots))
    if (const auto missing = first_missing(step, node)) return missing;
  return std::nullopt;
}

std::optional<slot_range> worker_core::first_missing(step_id step, slot_range node) const {
  const auto parked = parked_in(step, node);
  if (std::cmp_equal(
          std::count_if(parked.begin(), parked.end(), [](const auto& one) { return one.is_whole(); }),
          node.size()))
    return std::nullopt;
  if (!keeps_something_in(step, node)) return node;
  const auto at_or_before = kept_.upper_bound({step, slot_range{node.begin, {UINT32_MAX}}});
  if (at_or_before != kept_.begin()) {
    const auto& held = *std::prev(at_or_before);
    if (held.first == step && held.second.contains(node)) return std::nullopt;
  }
  const auto [left, right] = reduction_tree::children(node);
  if (const auto missing = first_missing(step, left)) return missing;
  return first_missing(step, right);
}

std::string worker_core::waiting_for() const {
  for (std::uint32_t index = 0; index < config_.ps_shards; ++index)
    if (!known_.contains({index})) return fmt::format("ps_shard {}", index);
  if (trained()) return "the end of the job";
  if (!lease_) return "lease";
  if (computing_) return "its own computation";
  const auto step = *open_step();
  if (!next_missing(step)) return lease_->slots.empty() ? "slots" : "other workers";
  for (const auto& [id, shard] : known_)
    if (!shard.parts.contains(version_before(step)))
      return fmt::format("parameters of ps_shard {}", id.value);
  return "nothing";
}

} // namespace dlrun::worker
