#include "actors/ps_shard/ps_shard_core.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::ps_shard {

using protocol::is_planted;
using protocol::planted_bug;
using protocol::reduction_tree;
using protocol::slot_range;

ps_shard_core::ps_shard_core(ps_shard_core_config config, timeline_id timeline, version_id restored,
                             bool serves_previous)
    : config_(std::move(config))
    , timeline_(timeline)
    , applied_(restored)
    , committed_(restored)
    , serves_previous_(serves_previous)
    , ledger_(step_from(restored)) {
  DLRUN_CHECK(config_.slots_of && config_.records_of, "a PS shard must know the shape of a step");
  DLRUN_CHECK(config_.early_publish_bound >= 1, "a bound of 0 publishes nothing");
  DLRUN_CHECK(restored.value <= config_.steps, "version {} of a job of {} steps", restored, config_.steps);
}

// ---- what it hears
// -----------------------------------------------------------------------------------------------

bool ps_shard_core::wants(const protocol::push& push) const {
  return !fenced_ && !knows_newer(push) && is_acceptable(push) && !holds(push.step, push.slots);
}

ps_shard_actions ps_shard_core::on_push(const protocol::push& push, value_id value) {
  DLRUN_CHECK(value.value < first_own_value, "value {} is not one of the shell's", value);
  ps_shard_actions out;
  if (!wants(push)) {
    out.emplace_back(release{value});
    auto answer = on_unusable_push(push);
    out.insert(out.end(), answer.begin(), answer.end());
    return out;
  }
  refuse_if_fenced(push.worker, push.self.incarnation);
  note_contribution(push);
  if (is_planted(config_.bug, planted_bug::arrival_order))
    insert_in_arrival_order(push, value, out);
  else
    insert(push, value, out);
  apply_next(out);
  return out;
}

ps_shard_actions ps_shard_core::on_unusable_push(const protocol::push& push) {
  if (auto refused = refuse_if_fenced(push.worker, push.self.incarnation)) return *refused;
  return {send_state{push.worker}};
}

ps_shard_actions ps_shard_core::on_pull(const protocol::pull& pull) {
  if (auto refused = refuse_if_fenced(pull.worker, pull.self.incarnation)) return *refused;
  return {send_state{pull.worker}};
}

ps_shard_actions ps_shard_core::on_applied(step_id step) {
  DLRUN_CHECK(applying_ == step, "step {} was applied, but not asked for", step);
  ps_shard_actions out;
  applying_.reset();
  const auto done = open_.find(step);
  const auto root = done->second.begin()->second.value;
  open_.erase(done);
  applied_ = version_after(step);
  serves_previous_ = true;
  if (!config_.logs) committed_ = applied_;
  if (!logging_.contains(step)) out.emplace_back(release{root});
  if (fenced_) return out;
  out.emplace_back(publish{});
  apply_next(out);
  return out;
}

ps_shard_actions ps_shard_core::on_appended(step_id step) {
  const auto logged = logging_.begin();
  DLRUN_CHECK(logged != logging_.end() && logged->first == step, "step {} is not the next in the log", step);
  ps_shard_actions out;
  committed_ = version_after(step);
  if (applied_ >= committed_) out.emplace_back(release{logged->second});
  logging_.erase(logged);
  if (fenced_) return out;
  out.emplace_back(publish{});
  apply_next(out);
  return out;
}

ps_shard_actions ps_shard_core::on_directory(const protocol::directory& directory) {
  for (const auto& entry : directory.entries) {
    if (entry.role.kind == protocol::role_kind::worker) {
      auto& newest = newest_[{entry.role.index}];
      newest = std::max(newest, entry.incarnation);
    }
    if (entry.role == protocol::ps_shard_role(config_.self) &&
        entry.incarnation > config_.fence.incarnation && !fenced_) {
      fenced_ = true;
      return {exit_fenced{entry.incarnation}};
    }
  }
  return {};
}

// ---- which gradients
// ---------------------------------------------------------------------------------------------

bool ps_shard_core::knows_newer(const protocol::push& push) const {
  const auto newest = newest_.find(push.worker);
  return newest != newest_.end() && newest->second > push.self.incarnation;
}

/// R4. Learns the incarnation when it is newer than what the directory told.
std::optional<ps_shard_actions> ps_shard_core::refuse_if_fenced(worker_id worker, incarnation speaking) {
  if (fenced_) return ps_shard_actions{};
  auto& newest = newest_[worker];
  if (speaking < newest) return ps_shard_actions{send_fenced{worker, newest}};
  newest = speaking;
  return std::nullopt;
}

/// R7: what cannot be summed yet is bounded.
bool ps_shard_core::is_in_window(step_id step) const {
  return step.value < config_.steps && step >= step_from(applied_) &&
         step.value <= applied_.value + config_.early_publish_bound + 1;
}

bool ps_shard_core::is_acceptable(const protocol::push& push) const {
  if (push.timeline != timeline_ || !is_in_window(push.step)) return false;
  if (!reduction_tree(config_.slots_of(push.step)).is_node(push.slots)) return false;
  std::uint64_t records = 0;
  for (auto slot = push.slots.begin; slot < push.slots.end; ++slot.value)
    records += config_.records_of(push.step, slot);
  return records == push.records;
}

bool ps_shard_core::holds(step_id step, slot_range slots) const {
  const auto open = open_.find(step);
  if (open == open_.end()) return false;
  if (is_planted(config_.bug, planted_bug::arrival_order))
    return !open->second.empty() && open->second.begin()->second.slots.touches(slots);
  const auto after = open->second.upper_bound({slots.begin, {UINT32_MAX}});
  return after != open->second.begin() && std::prev(after)->first.contains(slots);
}

/// R5: nodes are nested or disjoint, so the newcomer, which is in none, replaces those in it and touches no
/// other.
void ps_shard_core::insert(const protocol::push& push, value_id value, ps_shard_actions& out) {
  auto& open = open_[push.step];
  auto inner = open.lower_bound({push.slots.begin, {0}});
  while (inner != open.end() && inner->first.begin < push.slots.end) {
    out.emplace_back(release{inner->second.value});
    inner = open.erase(inner);
  }
  const auto node = open.emplace_hint(inner, push.slots, held_value{value, coverage(push.slots)});
  merge_upwards(push.step, node, out);
}

void ps_shard_core::merge_upwards(step_id step, open_step::iterator node, ps_shard_actions& out) {
  auto& open = open_.at(step);
  const reduction_tree tree(config_.slots_of(step));
  for (auto parent = tree.parent(node->first); parent; parent = tree.parent(node->first)) {
    const auto [left, right] = reduction_tree::children(*parent);
    const auto first = open.find(left);
    const auto second = open.find(right);
    if (first == open.end() || second == open.end()) return;
    auto sum = merge(std::move(first->second), std::move(second->second), out);
    open.erase(first);
    open.erase(second);
    node = open.emplace(*parent, std::move(sum)).first;
  }
}

ps_shard_core::held_value ps_shard_core::merge(held_value left, held_value right, ps_shard_actions& out) {
  const value_id sum{next_value_++};
  out.emplace_back(combine{sum, left.value, right.value});
  left.slots.add(right.slots);
  return {sum, std::move(left.slots)};
}

/// The mistake that the canonical tree is there to avoid.
void ps_shard_core::insert_in_arrival_order(const protocol::push& push, value_id value,
                                            ps_shard_actions& out) {
  auto& open = open_[push.step];
  held_value sum{value, coverage(push.slots)};
  if (!open.empty()) sum = merge(std::move(open.begin()->second), std::move(sum), out);
  open.clear();
  const auto root = reduction_tree(config_.slots_of(push.step)).root();
  bool complete = true;
  for (auto slot = root.begin; slot < root.end; ++slot.value)
    complete = complete && sum.slots.count(slot) > 0;
  open.emplace(complete ? root : slot_range{root.end, root.end}, std::move(sum));
}

// ---- which steps
// -------------------------------------------------------------------------------------------------

/// R7: applies the next step when its root is there and the log is not too far behind.
void ps_shard_core::apply_next(ps_shard_actions& out) {
  const auto step = step_from(applied_);
  if (applying_ || fenced_ || step.value >= config_.steps) return;
  const auto open = open_.find(step);
  if (open == open_.end()) return;
  const auto slots = config_.slots_of(step);
  const auto root = open->second.find(reduction_tree(slots).root());
  if (root == open->second.end()) return;
  if (applied_.value + 1 > committed_.value + config_.early_publish_bound) return;
  std::vector<std::uint64_t> records(slots);
  for (std::uint32_t slot = 0; slot < slots; ++slot) records[slot] = config_.records_of(step, {slot});
  ledger_.applied(step, root->second.slots, records);
  applying_ = step;
  out.emplace_back(apply{step, root->second.value});
  if (!config_.logs) return;
  logging_.emplace(step, root->second.value);
  out.emplace_back(append{step, root->second.value});
}

void ps_shard_core::note_contribution(const protocol::push& push) {
  const protocol::first_contribution now{push.worker, push.self.incarnation, push.step};
  const auto [at, first_time] = contributions_.try_emplace(push.worker, now);
  if (!first_time && at->second.incarnation < now.incarnation) at->second = now;
}

std::vector<protocol::first_contribution> ps_shard_core::contributions() const {
  std::vector<protocol::first_contribution> all;
  all.reserve(contributions_.size());
  for (const auto& [worker, what] : contributions_) all.push_back(what);
  return all;
}

/// While a step is being applied the buffer of the previous version is written to, and an append may be ahead
/// of it.
protocol::shard_state ps_shard_core::state() const {
  return {.shard = config_.self,
          .incarnation = config_.fence.incarnation,
          .timeline = timeline_,
          .applied = applied_,
          .committed = std::min(applied_, committed_),
          .serves_previous = serves_previous_ && !applying_,
          .parameters = {}};
}

} // namespace dlrun::ps_shard
