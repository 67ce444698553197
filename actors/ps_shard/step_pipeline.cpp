#include "actors/ps_shard/step_pipeline.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <utility>

namespace dlrun::ps_shard {

using protocol::durability;
using protocol::is_planted;
using protocol::planted_bug;

namespace {

/// R17: N always; nothing where nothing is kept.
std::set<version_id> named_snapshots(const ps_shard_core_config& config) {
  if (config.durability == durability::off) return {};
  std::set<version_id> all{{config.steps}};
  if (!is_planted(config.bug, planted_bug::message_snap))
    all.insert(config.named_snapshots.begin(), config.named_snapshots.end());
  return all;
}

void order_snapshot(version_id version, version_book& versions, const ledger& applied,
                    ps_shard_actions& out) {
  versions.begin(version);
  out.emplace_back(take_snapshot{version, applied.totals()});
}

} // namespace

step_pipeline::step_pipeline(std::shared_ptr<const ps_shard_core_config> config,
                             std::shared_ptr<shard_move> move)
    : config_(std::move(config))
    , plan_(config_)
    , open_(config_->slots_of, first_own_value, config_->bug)
    , norms_(config_->self, config_->ps_shards, norm_steps(config_->early_publish_bound),
             config_->combine_norms)
    , versions_(named_snapshots(*config_))
    , gate_(config_->gates)
    , move_(std::move(move)) {
  DLRUN_CHECK(config_->early_publish_bound >= 1, "a bound of 0 publishes nothing");
  DLRUN_CHECK(config_->snapshots_in_work_max >= 1, "a pool for no snapshot at all");
}

void step_pipeline::restart(loaded_standing&& restored) {
  DLRUN_CHECK(restored.version.value <= config_->steps, "version {} of a job of {} steps", restored.version,
              config_->steps);
  plan_.restart(std::move(restored.history));
  applied_ = restored.version;
  committed_ = config_->durability == durability::snapshots ? restored.stored() : applied_;
  serves_previous_ = restored.serves_previous && !is_planted(config_->bug, planted_bug::one_buffer);
  halted_ = false;
  applying_.reset();
  is_early_ = false;
  logging_.clear();
  offers_ = {};
  ledger_.restart(restored.ledger, step_from(restored.version));
  norms_.restart(plan_.timeline(), std::move(restored.partials));
  versions_.restart(std::move(restored.restorable), restored.snapshots);
  gate_.restart(applied_);
}

// ---- gradients

/// R7: what cannot be summed yet is bounded.
bool step_pipeline::can_use(const protocol::push& push) const {
  const bool is_in_window = push.step.value < config_->steps && push.step >= step_from(applied_) &&
                            push.step.value <= applied_.value + config_->early_publish_bound + 1;
  return is_in_window && plan_.fits(push) && !open_.holds(push.step, push.slots);
}

bool step_pipeline::take(const protocol::push& push, value_id value, ps_shard_actions& out) {
  open_.fill(push.step, plan_.parked_in(push.step), out);
  const bool is_new = !open_.holds(push.step, push.slots);
  if (is_new) open_.insert(push.step, push.slots, value, out);
  apply_next(out);
  stand_still(out);
  return is_new;
}

protocol::slot_range step_pipeline::offer(const protocol::pull& asked,
                                          const std::vector<protocol::slot_range>& on_the_way) {
  const auto step = step_from(applied_);
  const bool is_next =
      asked.timeline == plan_.timeline() && asked.step == step && step.value < config_->steps;
  if (halted_ || asked.tries == 0 || !is_next) return {};
  auto missing = open_.missing(step);
  for (const auto& slots : on_the_way)
    std::erase_if(missing, [&](slot_id slot) { return slots.begin <= slot && slot < slots.end; });
  return offers_.next(asked, protocol::reduction_tree(config_->slots_of(step)), missing);
}

void step_pipeline::drop_gradients(ps_shard_actions& out) {
  for (const auto& [step, root] : logging_)
    if (step < step_from(applied_)) out.emplace_back(release{root}); // the others are open still
  open_.clear(out);
}

// ---- when a step is applied

void step_pipeline::apply_next(ps_shard_actions& out) {
  if (!halted_) try_apply_next(out);
  open_.order_last_sums(out);
}

/// R7, R12: applies the next step when its root and everybody's norm are there and the log is not
/// too far behind.
void step_pipeline::try_apply_next(ps_shard_actions& out) {
  const auto step = step_from(applied_);
  if ((applying_ && !is_early_) || step.value >= config_->steps) return;
  open_.fill(step, plan_.parked_in(step), out);
  const auto* root = open_.root(step);
  if (root == nullptr) return;
  if (norms_.must_measure(step)) {
    open_.order_last_sums(out);
    out.emplace_back(measure{step, root->value, plan_.revision(step)});
  }
  const auto coupled = norms_.combined(step);
  if (coupled && (is_early_ || may_apply(step))) apply_root(step, *coupled, out);
}

/// R7, R8: as when all of it is there. Where norms couple, or slots have no gradient, it waits for
/// the whole.
std::optional<std::uint64_t> step_pipeline::begin_early(step_id step) {
  if (halted_ || step != step_from(applied_) || step.value >= config_->steps) return std::nullopt;
  if (is_early_) return plan_.revision(step);
  if (applying_ || config_->combine_norms || !plan_.parked_in(step).empty() || !may_apply(step))
    return std::nullopt;
  applying_ = step;
  is_early_ = true;
  return plan_.revision(step);
}

bool step_pipeline::may_apply(step_id step) const {
  const bool too_far = config_->durability == durability::every_step &&
                       version_after(step).value > committed_.value + config_->early_publish_bound &&
                       !is_planted(config_->bug, planted_bug::no_bound);
  const bool pool_is_full =
      versions_.is_wanted(version_after(step)) && versions_.in_work() >= config_->snapshots_in_work_max;
  const bool is_held =
      !gate_.may_reach(version_after(step)) && !is_planted(config_->bug, planted_bug::no_gate);
  return !too_far && !pool_is_full && !is_held && !move_->stands_still;
}

void step_pipeline::apply_root(step_id step, std::uint64_t coupled, ps_shard_actions& out) {
  const auto last_sum = open_.take_last_sum(step);
  const auto* root = open_.root(step);
  ledger_.applied(step, root->slots, plan_.records_in(step));
  applying_ = step;
  is_early_ = false;
  const auto revision = plan_.revision(step);
  if (config_->durability == durability::snapshots)
    out.emplace_back(retain{step, norms_.own(step), ledger_.totals()});
  out.emplace_back(apply{step, root->value, coupled, revision, last_sum});
  if (config_->durability != durability::every_step) return;
  logging_.emplace(step, root->value);
  out.emplace_back(
      append{step, root->value, plan_.timeline(), revision, coupled, norms_.own(step), ledger_.totals()});
}

// ---- what is done

void step_pipeline::on_applied(step_id step, protocol::duration took, ps_shard_actions& out) {
  DLRUN_CHECK(applying_ == step, "step {} was applied, but not asked for", step);
  replay_.add(took);
  applying_.reset();
  const auto root = open_.root(step)->value;
  open_.close(step);
  applied_ = version_after(step);
  serves_previous_ = !is_planted(config_->bug, planted_bug::one_buffer);
  if (config_->durability == durability::off) committed_ = applied_;
  norms_.forget_before(step_from(applied_), is_planted(config_->bug, planted_bug::no_norms));
  if (!logging_.contains(step)) out.emplace_back(release{root});
  if (halted_) return;
  out.emplace_back(publish{});
  if (versions_.is_wanted(applied_)) order_snapshot(applied_, versions_, ledger_, out);
  apply_next(out);
  stand_still(out);
}

void step_pipeline::on_committed(version_id version, ps_shard_actions& out) {
  DLRUN_CHECK(config_->durability == durability::every_step, "version {} in the log, but there is none",
              version);
  if (version <= committed_) return;
  while (!logging_.empty() && version_after(logging_.begin()->first) <= version) {
    const auto [step, root] = *logging_.begin();
    if (applied_ >= version_after(step)) out.emplace_back(release{root});
    logging_.erase(logging_.begin());
  }
  DLRUN_CHECK(logging_.empty() ? version.value <= applied_.value + 1
                               : version == version_before(logging_.begin()->first),
              "version {} is in the log, but not everything of it was appended", version);
  versions_.committed(committed_, version);
  committed_ = version;
  if (halted_) return;
  out.emplace_back(publish{});
  apply_next(out);
}

void step_pipeline::on_snapshot_durable(version_id version, ps_shard_actions& out) {
  versions_.snapshot_durable(version);
  if (config_->durability == durability::snapshots) {
    committed_ = std::max(committed_, version);
    if (!halted_) out.emplace_back(publish{});
  }
  DLRUN_CHECK(committed_ >= version, "a snapshot of version {} is durable before the log up to it", version);
  stand_still(out);
}

// ---- standing still

/// All gradients of the next step are there: so all shards have come to this version, and nobody
/// needs the one before any more, nor its norm (R8, R12). And others are a version ahead at most:
/// of the step that it lacks then workers keep the gradients (R10).
void step_pipeline::stand_still(ps_shard_actions& out) {
  if (!move_->is_wanted || halted_) return;
  move_->stands_still = move_->stands_still || !versions_.has_in_work(move_->begun_before);
  if (!move_->stands_still || applying_) return;
  if (committed() < applied_) {
    if (!versions_.is_in_work(applied_) && versions_.in_work() < config_->snapshots_in_work_max)
      order_snapshot(applied_, versions_, ledger_, out);
    return;
  }
  const bool is_last = applied_.value == config_->steps;
  if (is_last || open_.root(step_from(applied_)) != nullptr ||
      is_planted(config_->bug, planted_bug::leave_alone))
    out.emplace_back(end_in_order{});
}

// ---- snapshots, norms

void step_pipeline::order_missing_snapshots(ps_shard_actions& out) {
  const auto at_hand = applying_ ? std::nullopt : std::optional(applied_);
  for (const auto version : versions_.missing(applied_, at_hand))
    if (versions_.in_work() < config_->snapshots_in_work_max)
      order_snapshot(version, versions_, ledger_, out);
  stand_still(out);
}

void step_pipeline::repeat_norms(ps_shard_actions& out) const {
  if (!applying_) norms_.repeat(step_from(applied_), out);
}

protocol::durability_status step_pipeline::durable() const {
  protocol::durability_status kept;
  kept.held = open_.runs(step_from(applied_));
  if (config_->durability == durability::off) return kept;
  kept.history = plan_.history();
  kept.restorable = versions_.restorable();
  kept.snapshots = versions_.snapshots();
  kept.planned = versions_.planned(applied_);
  kept.serves_previous = serves_previous();
  kept.norms_from = norms_.known_from(step_from(applied_));
  kept.may_reach = gate_.limit();
  kept.replay_us = replay_.estimate_us(applied_, kept.snapshots);
  if (const auto& pinned = versions_.pinned()) {
    kept.has_pin = true;
    kept.pinned_by = pinned->dispatcher;
    kept.pinned = pinned->version;
  }
  return kept;
}

} // namespace dlrun::ps_shard
