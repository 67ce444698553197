/// A step at a PS shard, from its last gradient to the version in the log: what decides when it is applied.
#include "actors/ps_shard/ps_shard_core.hpp"

#include <dlrun/check.hpp>

namespace dlrun::ps_shard {

using protocol::durability;
using protocol::is_planted;
using protocol::planted_bug;

// ---- steps

/// R7, R12: applies the next step when its root and everybody's norm are there and the log is not too far
/// behind.
void ps_shard_core::apply_next(ps_shard_actions& out) {
  const auto step = step_from(applied_);
  if ((applying_ && !is_early_) || fenced_ || rewinding_ || step.value >= config_.steps) return;
  open_.fill(step, parked_in(step), out);
  const auto* root = open_.root(step);
  if (root == nullptr) return;
  if (norms_.must_measure(step)) out.emplace_back(measure{step, root->value, revision_at(history_, step)});
  const auto coupled = norms_.combined(step);
  if (coupled && (is_early_ || may_apply(step))) apply_root(step, *root, *coupled, out);
}

/// R7, R8: as when all of it is there. Where norms couple, or slots have no gradient, it waits for the whole.
std::optional<std::uint64_t> ps_shard_core::begin_early(step_id step) {
  const bool is_next = step == step_from(applied_) && step.value < config_.steps;
  if (!is_next || applying_ || fenced_ || rewinding_ || config_.combine_norms || !parked_in(step).empty() ||
      !may_apply(step))
    return std::nullopt;
  applying_ = step;
  is_early_ = true;
  return revision_at(history_, step);
}

bool ps_shard_core::may_apply(step_id step) const {
  const bool too_far = config_.durability == durability::every_step &&
                       version_after(step).value > committed_.value + config_.early_publish_bound &&
                       !is_planted(config_.bug, planted_bug::no_bound);
  const bool pool_is_full =
      store_.is_wanted(version_after(step)) && store_.in_work() >= config_.snapshots_in_work_max;
  const bool is_held =
      !gate_.may_reach(version_after(step)) && !is_planted(config_.bug, planted_bug::no_gate);
  return !too_far && !pool_is_full && !is_held;
}

void ps_shard_core::apply_root(step_id step, const open_steps::held_value& root, std::uint64_t coupled,
                               ps_shard_actions& out) {
  std::vector<std::uint64_t> records(config_.slots_of(step));
  for (std::uint32_t slot = 0; slot < records.size(); ++slot) records[slot] = records_of(step, {slot});
  ledger_.applied(step, root.slots, records);
  applying_ = step;
  is_early_ = false;
  const auto revision = revision_at(history_, step);
  out.emplace_back(apply{step, root.value, coupled, revision});
  if (config_.durability != durability::every_step) return;
  logging_.emplace(step, root.value);
  out.emplace_back(
      append{step, root.value, timeline(), revision, coupled, norms_.own(step), ledger_.totals()});
}

ps_shard_actions ps_shard_core::on_measured(step_id step, norm_partials partials) {
  ps_shard_actions out;
  norms_.measured(step, std::move(partials), out);
  apply_next(out);
  return out;
}

ps_shard_actions ps_shard_core::on_applied(step_id step) {
  DLRUN_CHECK(applying_ == step, "step {} was applied, but not asked for", step);
  ps_shard_actions out;
  applying_.reset();
  const auto root = open_.root(step)->value;
  open_.close(step);
  applied_ = version_after(step);
  serves_previous_ = !is_planted(config_.bug, planted_bug::one_buffer);
  if (config_.durability == durability::off) committed_ = applied_;
  norms_.forget_before(step_from(applied_), is_planted(config_.bug, planted_bug::no_norms));
  if (!logging_.contains(step)) out.emplace_back(release{root});
  if (fenced_ || rewinding_) return out;
  out.emplace_back(publish{});
  if (store_.is_wanted(applied_)) order_snapshot(applied_, out);
  apply_next(out);
  return out;
}

ps_shard_actions ps_shard_core::on_committed(version_id version) {
  DLRUN_CHECK(config_.durability == durability::every_step, "version {} in the log, but there is none",
              version);
  ps_shard_actions out;
  if (version <= committed_) return out;
  while (!logging_.empty() && version_after(logging_.begin()->first) <= version) {
    const auto [step, root] = *logging_.begin();
    if (applied_ >= version_after(step)) out.emplace_back(release{root});
    logging_.erase(logging_.begin());
  }
  DLRUN_CHECK(logging_.empty() ? version.value <= applied_.value + 1
                               : version == version_before(logging_.begin()->first),
              "version {} is in the log, but not everything of it was appended", version);
  store_.committed(committed_, version);
  committed_ = version;
  if (fenced_ || rewinding_) return out;
  out.emplace_back(publish{});
  apply_next(out);
  return out;
}

// ---- norms

ps_shard_actions ps_shard_core::on_norm(const protocol::norm& message) {
  ps_shard_actions out;
  if (fenced_ || rewinding_) return out;
  norms_.heard(message, step_from(applied_));
  apply_next(out);
  return out;
}

ps_shard_actions ps_shard_core::on_norm_request(const protocol::norm_request& message) {
  ps_shard_actions out;
  if (!fenced_ && !rewinding_) norms_.asked(message, out);
  return out;
}

} // namespace dlrun::ps_shard
