#include "actors/ps_shard/made_versions.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <set>
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

bool has_room(const version_book& book, const ps_shard_core_config& config) {
  return book.in_work() < config.snapshots_in_work_max;
}

void order_snapshot(version_id version, version_book& book, const ledger& applied, ps_shard_actions& out) {
  book.begin(version);
  out.emplace_back(take_snapshot{version, applied.totals()});
}

} // namespace

made_versions::made_versions(std::shared_ptr<const ps_shard_core_config> config)
    : config_(std::move(config))
    , book_(named_snapshots(*config_))
    , gate_(config_->gates) {
  DLRUN_CHECK(config_->early_publish_bound >= 1, "a bound of 0 publishes nothing");
  DLRUN_CHECK(config_->snapshots_in_work_max >= 1, "a pool for no snapshot at all");
}

void made_versions::restart(const loaded_standing& restored) {
  DLRUN_CHECK(restored.version.value <= config_->steps, "version {} of a job of {} steps", restored.version,
              config_->steps);
  applied_ = restored.version;
  committed_ = config_->durability == durability::snapshots ? restored.stored() : applied_;
  serves_previous_ = restored.serves_previous && !is_planted(config_->bug, planted_bug::one_buffer);
  making_.reset();
  is_early_ = false;
  logging_.clear();
  ledger_.restart(restored.ledger, step_from(restored.version));
  book_.restart(restored.restorable, restored.snapshots);
  gate_.restart(applied_);
}

// ---- when one is made

bool made_versions::is_gated(version_id version) const {
  return !gate_.may_reach(version) && !is_planted(config_->bug, planted_bug::no_gate);
}

bool made_versions::may_make(version_id version) const {
  return !is_gated(version) && held_by(version) == store_wait::nothing;
}

store_wait made_versions::held_by(version_id version) const {
  if (is_gated(version)) return store_wait::nothing;
  const bool too_far = config_->durability == durability::every_step &&
                       version.value > committed_.value + config_->early_publish_bound &&
                       !is_planted(config_->bug, planted_bug::no_bound);
  if (too_far) return store_wait::log;
  const bool is_full = book_.is_wanted(version) && !has_room(book_, *config_);
  return is_full ? store_wait::snapshot : store_wait::nothing;
}

void made_versions::begin_early(step_id step) {
  making_ = step;
  is_early_ = true;
}

void made_versions::begin(step_id step, const open_steps::held_value& root,
                          const std::vector<std::uint64_t>& records) {
  making_ = step;
  is_early_ = false;
  ledger_.applied(step, root.slots, records);
  if (config_->durability == durability::every_step) logging_.emplace(step, root.value);
}

// ---- what is done

bool made_versions::on_applied(step_id step, protocol::duration took) {
  DLRUN_CHECK(making_ == step, "step {} was applied, but not asked for", step);
  replay_.add(took);
  making_.reset();
  applied_ = version_after(step);
  serves_previous_ = !is_planted(config_->bug, planted_bug::one_buffer);
  if (config_->durability == durability::off) committed_ = applied_;
  return logging_.contains(step);
}

bool made_versions::on_committed(version_id version, ps_shard_actions& out) {
  DLRUN_CHECK(config_->durability == durability::every_step, "version {} in the log, but there is none",
              version);
  if (version <= committed_) return false;
  while (!logging_.empty() && version_after(logging_.begin()->first) <= version) {
    const auto [step, root] = *logging_.begin();
    if (applied_ >= version_after(step)) out.emplace_back(release{root});
    logging_.erase(logging_.begin());
  }
  DLRUN_CHECK(logging_.empty() ? version.value <= applied_.value + 1
                               : version == version_before(logging_.begin()->first),
              "version {} is in the log, but not everything of it was appended", version);
  book_.committed(committed_, version);
  committed_ = version;
  return true;
}

void made_versions::on_snapshot_durable(version_id version) {
  book_.snapshot_durable(version);
  if (config_->durability == durability::snapshots) committed_ = std::max(committed_, version);
  DLRUN_CHECK(committed_ >= version, "a snapshot of version {} is durable before the log up to it", version);
}

void made_versions::drop_appends(ps_shard_actions& out) {
  for (const auto& [step, root] : logging_)
    if (step < step_from(applied_)) out.emplace_back(release{root}); // the others are open still
}

// ---- snapshots

void made_versions::snapshot_wanted(ps_shard_actions& out) {
  if (book_.is_wanted(applied_)) order_snapshot(applied_, book_, ledger_, out);
}

void made_versions::snapshot_missing(ps_shard_actions& out) {
  const auto at_hand = making_ ? std::nullopt : std::optional(applied_);
  for (const auto version : book_.missing(applied_, at_hand))
    if (has_room(book_, *config_)) order_snapshot(version, book_, ledger_, out);
}

void made_versions::snapshot_applied(ps_shard_actions& out) {
  if (!book_.is_in_work(applied_) && has_room(book_, *config_)) order_snapshot(applied_, book_, ledger_, out);
}

protocol::durability_status made_versions::durable() const {
  protocol::durability_status kept;
  if (config_->durability == durability::off) return kept;
  kept.restorable = book_.restorable();
  kept.snapshots = book_.snapshots();
  kept.planned = book_.planned(applied_);
  kept.serves_previous = serves_previous();
  kept.may_reach = gate_.limit();
  kept.replay_us = replay_.estimate_us(applied_, kept.snapshots);
  if (const auto& pinned = book_.pinned()) {
    kept.has_pin = true;
    kept.pinned_by = pinned->dispatcher;
    kept.pinned = pinned->version;
  }
  return kept;
}

} // namespace dlrun::ps_shard
