#include "actors/ps_shard/step_pipeline.hpp"

#include <utility>

namespace dlrun::ps_shard {

using protocol::durability;
using protocol::is_planted;
using protocol::planted_bug;

step_pipeline::step_pipeline(std::shared_ptr<const ps_shard_core_config> config)
    : config_(std::move(config))
    , plan_(config_)
    , open_(config_->slots_of, first_own_value, config_->bug)
    , norms_(config_->self, config_->ps_shards, norm_steps(config_->early_publish_bound),
             config_->combine_norms)
    , versions_(config_) {}

void step_pipeline::restart(loaded_standing&& restored) {
  versions_.restart(restored);
  plan_.restart(std::move(restored.history));
  halted_ = false;
  offers_ = {};
  norms_.restart(plan_.timeline(), std::move(restored.partials));
}

// ---- gradients

/// R7: what cannot be summed yet is bounded.
bool step_pipeline::can_use(const protocol::push& push) const {
  const auto applied = versions_.applied();
  const bool is_in_window = push.step.value < config_->steps && push.step >= step_from(applied) &&
                            push.step.value <= applied.value + config_->early_publish_bound + 1;
  return is_in_window && plan_.fits(push) && !open_.holds(push.step, push.slots);
}

bool step_pipeline::take(const protocol::push& push, value_id value, ps_shard_actions& out) {
  open_.fill(push.step, plan_.parked_in(push.step), out);
  const bool is_new = !open_.holds(push.step, push.slots);
  if (is_new) open_.insert(push.step, push.slots, value, out);
  apply_next(out);
  return is_new;
}

protocol::slot_range step_pipeline::offer(const protocol::pull& asked,
                                          const std::vector<protocol::slot_range>& on_the_way) {
  const auto step = step_from(versions_.applied());
  const bool is_next =
      asked.timeline == plan_.timeline() && asked.step == step && step.value < config_->steps;
  if (halted_ || asked.tries == 0 || !is_next) return {};
  auto missing = open_.missing(step);
  for (const auto& slots : on_the_way)
    std::erase_if(missing, [&](slot_id slot) { return slots.begin <= slot && slot < slots.end; });
  return offers_.next(asked, protocol::reduction_tree(config_->slots_of(step)), missing);
}

void step_pipeline::drop_gradients(ps_shard_actions& out) {
  versions_.drop_appends(out);
  open_.clear(out);
}

// ---- when a step is applied

void step_pipeline::apply_next(ps_shard_actions& out) {
  if (!halted_) try_apply_next(out);
  open_.order_last_sums(out);
}

/// R7, R12: applies the next step when its root and everybody's norm are there and its version may
/// be made.
void step_pipeline::try_apply_next(ps_shard_actions& out) {
  const auto step = step_from(versions_.applied());
  if ((versions_.is_making() && !versions_.is_early()) || step.value >= config_->steps) return;
  open_.fill(step, plan_.parked_in(step), out);
  const auto* root = open_.root(step);
  if (root == nullptr) return;
  if (norms_.must_measure(step)) {
    open_.order_last_sums(out);
    out.emplace_back(measure{step, root->value, plan_.revision(step)});
  }
  const auto coupled = norms_.combined(step);
  const bool may_apply = versions_.is_early() || (!paused_ && versions_.may_make(version_after(step)));
  if (coupled && may_apply) apply_root(step, *coupled, out);
}

store_wait step_pipeline::held_by() const {
  const auto step = step_from(versions_.applied());
  if (halted_ || paused_ || versions_.is_making() || step.value >= config_->steps) return store_wait::nothing;
  const auto held = versions_.held_by(version_after(step));
  const bool is_ready = held != store_wait::nothing && open_.root(step) != nullptr && norms_.combined(step);
  return is_ready ? held : store_wait::nothing;
}

/// R7, R8: as when all of it is there. Where norms couple, or slots have no gradient, it waits for
/// the whole.
std::optional<std::uint64_t> step_pipeline::begin_early(step_id step) {
  if (halted_ || step != step_from(versions_.applied()) || step.value >= config_->steps) return std::nullopt;
  if (versions_.is_early()) return plan_.revision(step);
  if (versions_.is_making() || config_->combine_norms || !plan_.parked_in(step).empty() || paused_ ||
      !versions_.may_make(version_after(step)))
    return std::nullopt;
  versions_.begin_early(step);
  return plan_.revision(step);
}

void step_pipeline::apply_root(step_id step, std::uint64_t coupled, ps_shard_actions& out) {
  const auto last_sum = open_.take_last_sum(step);
  const auto* root = open_.root(step);
  versions_.begin(step, *root, plan_.records_in(step));
  const auto revision = plan_.revision(step);
  if (config_->durability == durability::snapshots)
    out.emplace_back(retain{step, norms_.own(step), versions_.totals()});
  out.emplace_back(apply{step, root->value, coupled, revision, last_sum});
  if (config_->durability == durability::every_step)
    out.emplace_back(
        append{step, root->value, plan_.timeline(), revision, coupled, norms_.own(step), versions_.totals()});
}

void step_pipeline::on_applied(step_id step, protocol::duration took, ps_shard_actions& out) {
  const bool is_logging = versions_.on_applied(step, took);
  const auto root = open_.root(step)->value;
  open_.close(step);
  norms_.forget_before(step_from(versions_.applied()), is_planted(config_->bug, planted_bug::no_norms));
  if (!is_logging) out.emplace_back(release{root});
  if (halted_) return;
  out.emplace_back(publish{});
  versions_.snapshot_wanted(out);
  apply_next(out);
}

// ---- norms, what is there

void step_pipeline::repeat_norms(ps_shard_actions& out) const {
  if (!versions_.is_making()) norms_.repeat(step_from(versions_.applied()), out);
}

protocol::durability_status step_pipeline::durable() const {
  const auto next = step_from(versions_.applied());
  auto kept = versions_.durable();
  kept.held = open_.runs(next);
  if (config_->durability == durability::off) return kept;
  kept.history = plan_.history();
  kept.norms_from = norms_.known_from(next);
  return kept;
}

} // namespace dlrun::ps_shard
