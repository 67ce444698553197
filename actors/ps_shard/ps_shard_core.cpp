#include "actors/ps_shard/ps_shard_core.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::ps_shard {

using protocol::durability;
using protocol::is_planted;
using protocol::planted_bug;
using protocol::reduction_tree;

namespace {

/// R17: N always; nothing where nothing is kept.
std::set<version_id> named_snapshots(const ps_shard_core_config& config) {
  if (config.durability == durability::off) return {};
  std::set<version_id> all{{config.steps}};
  if (!is_planted(config.bug, planted_bug::message_snap))
    all.insert(config.named_snapshots.begin(), config.named_snapshots.end());
  return all;
}

} // namespace

ps_shard_core::ps_shard_core(ps_shard_core_config config, restored_state restored)
    : config_(std::move(config))
    , open_(config_.slots_of, first_own_value, config_.bug)
    , norms_(config_.self, config_.ps_shards, config_.early_publish_bound + 2, config_.combine_norms)
    , store_(named_snapshots(config_))
    , gate_(config_.gates) {
  DLRUN_CHECK(config_.slots_of && config_.records_of, "a PS shard must know the shape of a step");
  DLRUN_CHECK(config_.early_publish_bound >= 1, "a bound of 0 publishes nothing");
  DLRUN_CHECK(config_.snapshots_in_work_max >= 1, "a pool for no snapshot at all");
  load(std::move(restored));
}

void ps_shard_core::load(restored_state&& restored) {
  DLRUN_CHECK(is_valid(restored.history), "a store has a history");
  DLRUN_CHECK(restored.version.value <= config_.steps, "version {} of a job of {} steps", restored.version,
              config_.steps);
  history_ = std::move(restored.history);
  parked_ = parked_slots(history_);
  applied_ = committed_ = restored.version;
  serves_previous_ = restored.serves_previous && !is_planted(config_.bug, planted_bug::one_buffer);
  applying_.reset();
  is_early_ = false;
  logging_.clear();
  ledger_.restart(restored.ledger, step_from(restored.version));
  norms_.restart(timeline(), std::move(restored.partials));
  store_.restart(std::move(restored.restorable), restored.snapshots);
  gate_.restart(applied_);
}

ps_shard_actions ps_shard_core::start() {
  ps_shard_actions out;
  announce(out);
  return out;
}

void ps_shard_core::announce(ps_shard_actions& out) {
  out.emplace_back(publish{});
  out.emplace_back(send_status{});
  make_missing_snapshots(out);
  apply_next(out);
}

// ---- workers

bool ps_shard_core::wants(const protocol::push& push) const {
  return !fenced_ && !rewinding_ && !knows_newer(push) && is_acceptable(push) &&
         !open_.holds(push.step, push.slots);
}

ps_shard_actions ps_shard_core::on_push(const protocol::push& push, value_id value) {
  DLRUN_CHECK(value.value < first_own_value, "value {} is not one of the shell's", value);
  ps_shard_actions out;
  open_.fill(push.step, wants(push) ? parked_in(push.step) : std::vector<slot_id>{}, out);
  if (!wants(push)) {
    out.emplace_back(release{value});
    auto answer = on_unusable_push(push);
    out.insert(out.end(), answer.begin(), answer.end());
    return out;
  }
  refuse_if_fenced(push.worker, push.self.incarnation);
  note_contribution(push);
  open_.insert(push.step, push.slots, value, out);
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
  const bool ours = push.timeline == timeline() || is_planted(config_.bug, planted_bug::no_timeline);
  if (!ours || !is_in_window(push.step)) return false;
  if (!reduction_tree(config_.slots_of(push.step)).is_node(push.slots)) return false;
  std::uint64_t records = 0;
  for (auto slot = push.slots.begin; slot < push.slots.end; ++slot.value)
    records += records_of(push.step, slot);
  return records == push.records;
}

std::vector<slot_id> ps_shard_core::parked_in(step_id step) const {
  std::vector<slot_id> slots;
  for (auto at = std::lower_bound(parked_.begin(), parked_.end(), protocol::parked_slot{step, {0}});
       at != parked_.end() && at->step == step; ++at)
    slots.push_back(at->slot);
  return slots;
}

std::uint64_t ps_shard_core::records_of(step_id step, slot_id slot) const {
  const bool parked = std::binary_search(parked_.begin(), parked_.end(), protocol::parked_slot{step, slot});
  return parked ? 0 : config_.records_of(step, slot);
}

void ps_shard_core::note_contribution(const protocol::push& push) {
  auto& noted = contributions_[push.worker];
  if (push.self.incarnation > noted.incarnation) noted = {push.worker, push.self.incarnation, push.step};
}

// ---- time

ps_shard_actions ps_shard_core::on_tick() {
  ps_shard_actions out;
  if (fenced_ || rewinding_) return out;
  if (!applying_) norms_.repeat(step_from(applied_), out);
  make_missing_snapshots(out);
  return out;
}

// ---- snapshots

void ps_shard_core::order_snapshot(version_id version, ps_shard_actions& out) {
  store_.begin(version);
  out.emplace_back(take_snapshot{version, ledger_.totals()});
}

/// R17: those that a crash cut short, or that failed.
void ps_shard_core::make_missing_snapshots(ps_shard_actions& out) {
  const auto at_hand = applying_ ? std::nullopt : std::optional(applied_);
  for (const auto version : store_.missing(applied_, at_hand))
    if (store_.in_work() < config_.snapshots_in_work_max) order_snapshot(version, out);
}

ps_shard_actions ps_shard_core::on_name_snapshot(const protocol::name_snapshot& order) {
  const bool usable = config_.durability != durability::off && order.timeline == timeline() && !rewinding_ &&
                      order.version > applied_ && order.version.value <= config_.steps;
  if (usable) store_.ask_for(order.version);
  return {};
}

ps_shard_actions ps_shard_core::on_snapshot_durable(version_id version) {
  ps_shard_actions out;
  store_.snapshot_durable(version);
  if (config_.durability == durability::snapshots) {
    committed_ = std::max(committed_, version);
    if (!fenced_ && !rewinding_) out.emplace_back(publish{});
  }
  DLRUN_CHECK(committed_ >= version, "a snapshot of version {} is durable before the log up to it", version);
  if (fenced_ || rewinding_) return out;
  if (is_planted(config_.bug, planted_bug::own_floor)) drop({version, {}}, out);
  out.emplace_back(send_status{});
  apply_next(out);
  return out;
}

ps_shard_actions ps_shard_core::on_snapshot_failed(version_id version) {
  ps_shard_actions out;
  store_.failed(version);
  apply_next(out);
  return out;
}

ps_shard_actions ps_shard_core::on_floor(const protocol::floor& order) {
  ps_shard_actions out;
  if (fenced_ || rewinding_ || order.timeline != timeline()) return out;
  const auto kept = order.keeps ? std::optional(order.kept) : std::nullopt;
  const auto bound = store_.droppable(order.version, order.dispatcher, kept);
  if (is_planted(config_.bug, planted_bug::untagged_status)) // to the letter, not lowered to what is there
    drop({order.version, kept}, out);
  else if (bound)
    drop({*bound, kept}, out);
  return out;
}

void ps_shard_core::drop(const drop_below& what, ps_shard_actions& out) {
  store_.dropped_below(what.version, what.kept);
  out.emplace_back(what);
}

ps_shard_actions ps_shard_core::on_go_on(const protocol::go_on& order) {
  ps_shard_actions out;
  if (fenced_ || rewinding_ || order.timeline != timeline()) return out;
  gate_.raise(order.limit);
  apply_next(out);
  return out;
}

ps_shard_actions ps_shard_core::on_pin(const protocol::pin& order) {
  if (fenced_ || rewinding_ || order.timeline != timeline()) return {};
  store_.set_pin(order.dispatcher, order.version);
  return {send_status{}};
}

bool ps_shard_core::has_snapshot(timeline_id wanted, version_id version) const {
  return !rewinding_ && wanted == timeline() && store_.has_snapshot(version);
}

// ---- going back

/// R16. What cannot be obeyed is answered with where it stands.
ps_shard_actions ps_shard_core::on_rewind(const protocol::rewind& order) {
  if (fenced_ || rewinding_ || config_.durability == durability::off) return {};
  if (!is_valid(order.history) || newest_timeline(order.history) != order.timeline) return {};
  if (is_planted(config_.bug, planted_bug::park_in_place) && order.timeline == timeline()) {
    history_ = order.history;
    parked_ = parked_slots(history_);
    ps_shard_actions out;
    apply_next(out);
    return out;
  }
  if (order.timeline <= timeline() || !store_.can_restore(order.version)) return {send_status{}};
  rewinding_ = true;
  return {perform_rewind{order.timeline, order.version, order.history}};
}

ps_shard_actions ps_shard_core::on_rewound(restored_state loaded) {
  DLRUN_CHECK(rewinding_, "version {} is loaded, but nobody went back", loaded.version);
  ps_shard_actions out;
  for (const auto& [step, root] : logging_)
    if (step < step_from(applied_)) out.emplace_back(release{root}); // the others are open still
  open_.clear(out);
  rewinding_ = false;
  load(std::move(loaded));
  if (!fenced_) announce(out);
  return out;
}

ps_shard_actions ps_shard_core::on_probe(const protocol::probe& question) {
  if (fenced_) return {};
  return {send_status{question.id}};
}

// ---- where it stands

std::vector<protocol::first_contribution> ps_shard_core::contributions() const {
  std::vector<protocol::first_contribution> all;
  for (const auto& [worker, noted] : contributions_) all.push_back(noted);
  return all;
}

/// While a step is being applied the buffer of the previous version is written to, and an append may be ahead
/// of it.
protocol::shard_state ps_shard_core::state() const {
  return {.shard = config_.self,
          .incarnation = config_.fence.incarnation,
          .timeline = timeline(),
          .applied = applied_,
          .committed = std::min(applied_, committed_),
          .serves_previous = serves_previous_ && !applying_,
          .parameters = {},
          .parked = parked_};
}

protocol::shard_status ps_shard_core::status(std::uint64_t probe) const {
  const auto now = state();
  protocol::shard_status all{.shard = now.shard,
                             .self = config_.fence,
                             .timeline = now.timeline,
                             .applied = now.applied,
                             .committed = now.committed,
                             .ledger = ledger_.totals(),
                             .contributions = contributions(),
                             .probe = probe};
  if (config_.durability == durability::off) return all;
  auto& kept = all.durable;
  kept.history = history_;
  kept.restorable = store_.restorable();
  kept.snapshots = store_.snapshots();
  kept.planned = store_.planned(applied_);
  kept.serves_previous = now.serves_previous;
  kept.norms_from = norms_.known_from(step_from(applied_));
  kept.held = open_.runs(step_from(applied_));
  kept.may_reach = gate_.limit();
  if (const auto& pinned = store_.pinned()) {
    kept.has_pin = true;
    kept.pinned_by = pinned->dispatcher;
    kept.pinned = pinned->version;
  }
  return all;
}

} // namespace dlrun::ps_shard
