#include "actors/worker/worker_core.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::worker {

using protocol::is_planted;
using protocol::planted_bug;
using protocol::slot_range;
using protocol::time_point;

worker_core::worker_core(worker_core_config config)
    : config_{std::move(config)}
    , share_{config_.slots_of}
    , contacts_{config_.repeat_after}
    , connections_{config_.ps_shards, config_.repeat_after}
    , shards_{config_.ps_shards, config_.bug}
    , parts_{config_.repeat_after} {
  DLRUN_CHECK(config_.slots_of != nullptr, "a worker must know how many slots a step has");
}

// ---- what it hears

worker_actions worker_core::on_shard_state(const protocol::shard_state& state, time_point now) {
  if (over_ || state.shard.value >= config_.ps_shards) return {};
  worker_actions out;
  if (!adopt(state, out)) return out;
  const auto news = shards_.hear(state);
  if (!news) return out;
  help_.hear(state);
  contacts_.on_heard(state.shard, news->is_new_start, now);
  if (news->is_new_start) parts_.drop(state.shard);
  if (news->has_moved()) parts_.forget_refusals(state.shard);
  if (is_planted(config_.bug, planted_bug::ack_forever))
    kept_.acknowledge(state.shard, step_from(news->applied));
  if (news->is_new_start)
    push_from(state.shard, step_from(news->applied), now, out);
  else if (news->has_moved()) // steps that it refused as too far ahead and takes now
    push_from(state.shard, {news->before.value + config_.early_publish_bound + 2}, now, out);
  act(now, out);
  return out;
}

worker_actions worker_core::on_part(const fetch_part& order, fetch_outcome outcome, time_point now) {
  if (over_ || !parts_.end(order)) return {};
  worker_actions out;
  const auto* shard = shards_.find(order.shard);
  if (order.timeline == timeline_ && shard != nullptr && shard->incarnation == order.shard_incarnation &&
      !parts_.take(order, outcome, now))
    pull(order.shard, now, out);
  act(now, out);
  return out;
}

worker_actions worker_core::on_connected(ps_shard_id shard, incarnation start, time_point now) {
  if (over_ || !connections_.on_connected(shard, start)) return {};
  contacts_.on_connected(shard);
  worker_actions out;
  pull(shard, now, out);
  return out;
}

worker_actions worker_core::on_unconnected(ps_shard_id shard, incarnation start, time_point now) {
  connections_.on_unconnected(shard, start, now);
  return {};
}

worker_actions worker_core::on_computed(timeline_id timeline, step_id step, slot_range slots,
                                        time_point now) {
  if (!end_computation(timeline, step, slots)) return {};
  help_.on_computed(step, slots, now - computing_since_);
  worker_actions out;
  if (timeline == timeline_ && !shards_.are_past(step, config_.durability)) {
    kept_.add({step, slots}, now);
    for (const auto& [id, shard] : shards_.all()) {
      if (shard.applied > version_before(step)) continue;
      out.emplace_back(push_gradient{id, step, slots});
      contacts_.on_pushed(id, now);
    }
  } else {
    out.emplace_back(forget_gradient{step, slots});
  }
  act(now, out);
  return out;
}

worker_actions worker_core::on_overwritten(timeline_id timeline, step_id step, slot_range slots,
                                           time_point now) {
  if (!end_computation(timeline, step, slots)) return {};
  if (timeline == timeline_) parts_.drop(version_before(step));
  worker_actions out;
  act(now, out);
  return out;
}

worker_actions worker_core::on_lease(const protocol::lease& lease, time_point now) {
  if (over_ || lease.worker != config_.fence.incarnation || !share_.take(lease)) return {};
  worker_actions out;
  act(now, out);
  return out;
}

worker_actions worker_core::on_directory(const protocol::directory& directory, time_point) {
  if (over_ || !is_newest(directory)) return {};
  directory_ = {directory.coordinator, directory.sequence};
  warnings_.set_suspects(directory.suspects);
  worker_actions out;
  for (auto& entry : connections_.on_directory(directory)) out.emplace_back(connect_shard{std::move(entry)});
  for (const auto& entry : directory.entries)
    if (entry.role == protocol::worker_role(config_.self))
      if (auto end = exit_if_older(entry.incarnation); !end.empty()) return end;
  return out;
}

worker_actions worker_core::on_fenced(const protocol::fenced& message, time_point) {
  if (message.role != protocol::worker_role(config_.self)) return {};
  return exit_if_older(message.newest);
}

worker_actions worker_core::on_probe(const protocol::probe& question, time_point) {
  if (over_) return {};
  return {send_kept{{config_.self, config_.fence, timeline_, question.id, kept_.runs()}}};
}

worker_actions worker_core::on_leave(time_point now) {
  if (over_ || share_.is_leaving()) return {};
  const auto open = open_step();
  const bool is_computing = computing_ && computing_->timeline == timeline_ && computing_->step == open;
  const bool has_begun = open && (is_computing || !kept_.from(*open).empty());
  share_.leave(has_begun ? open : std::nullopt);
  worker_actions out;
  act(now, out);
  return out;
}

worker_actions worker_core::on_tick(time_point now) {
  if (over_) return {};
  worker_actions out;
  for (auto& entry : connections_.on_tick(now)) out.emplace_back(connect_shard{std::move(entry)});
  parts_.on_tick(now);
  for (std::uint32_t index = 0; index < config_.ps_shards; ++index) repeat({index}, now, out);
  act(now, out);
  look_at_overdue(now, out);
  return out;
}

// ---- what it does

/// False when what was heard belongs to an older timeline (R2).
bool worker_core::adopt(const protocol::shard_state& state, worker_actions& out) {
  if (state.timeline < timeline_) return is_planted(config_.bug, planted_bug::no_timeline_w);
  if (state.timeline > timeline_) {
    timeline_ = state.timeline;
    shards_.clear();
    parts_.clear();
    kept_.clear();
    help_.clear();
    share_.drop_begun();
    out.emplace_back(discard_all{state.timeline});
  }
  if (shards_.is_empty() || is_planted(config_.bug, planted_bug::park_in_place))
    warnings_.set_parked(state.parked);
  return true;
}

/// R33: what it keeps may be needed until it is committed everywhere, and so forgotten (R10). What
/// it computes and nobody has seen yet nobody needs.
void worker_core::act(time_point now, worker_actions& out) {
  work(now, out);
  if (over_ || !share_.is_leaving()) return;
  const auto open = open_step();
  const bool has_more =
      computing_ || (open && open->value < config_.steps && share_.next_missing(*open, kept_, warnings_));
  if ((has_more || !kept_.from({}).empty()) && !is_planted(config_.bug, planted_bug::leave_early)) return;
  over_ = true;
  out.emplace_back(exit_left{});
}

void worker_core::work(time_point now, worker_actions& out) {
  if (!shards_.is_complete()) return;
  forget(out);
  if (!is_planted(config_.bug, planted_bug::mix_versions))
    parts_.drop_outside(version_before(*open_step()), version_after(*open_step()));
  help_.open(*open_step(), now);
  fetch(out);
  compute(now, out);
}

/// R10: what every shard has committed, and what is beyond the bound: there the highest step first.
void worker_core::forget(worker_actions& out) {
  const auto is_past = [this](step_id step) { return shards_.are_past(step, config_.durability); };
  for (const auto& [step, slots] : kept_.drop(is_past, config_.early_publish_bound + 2))
    out.emplace_back(forget_gradient{step, slots});
}

void worker_core::fetch(worker_actions& out) {
  const auto open = *open_step();
  // The buffer of a version that is computed from is left alone, also for that version, which is
  // fetched again when its PS shard was restarted: a copy that fails half-way leaves anything in
  // it.
  const auto is_in_use = [&](version_id version) {
    return computing_ && computing_->step.value % 2 == version.value % 2;
  };
  // Version N is fetched too, for the evaluation.
  const auto is_needed = [&](version_id version) {
    return version.value < config_.steps
               ? help_.next_missing(step_from(version), share_, kept_, warnings_).has_value()
               : version.value == config_.steps;
  };
  for (const auto wanted : {version_before(open), version_after(open)}) {
    if (!is_needed(wanted) || is_in_use(wanted)) continue;
    for (const auto& [id, shard] : shards_.all()) {
      if (!shard.serves(wanted) || !parts_.may_fetch(id, wanted)) continue;
      const fetch_part order{id, shard.incarnation, timeline_, wanted};
      parts_.begin(order);
      out.emplace_back(order);
    }
  }
}

void worker_core::compute(time_point now, worker_actions& out) {
  const auto step = *open_step();
  if (computing_ || step.value >= config_.steps) return;
  const auto slots = help_.next_missing(step, share_, kept_, warnings_);
  if (!slots) {
    const protocol::pull asking{timeline_, config_.self, config_.fence, step};
    if (share_.may_help()) help_.look_for_more(asking, share_, shards_, now, out);
    return;
  }
  const bool mixes = is_planted(config_.bug, planted_bug::mix_versions);
  for (const auto& [id, shard] : shards_.all())
    if (mixes ? !parts_.holds_any(id) : !parts_.holds(id, version_before(step))) return; // R6
  computing_ = warnings_.order_of(timeline_, step, *slots);
  computing_since_ = now;
  out.emplace_back(*computing_);
}

/// R9: everything kept of `first` and later that the shard has not applied.
void worker_core::push_from(ps_shard_id shard, step_id first, time_point now, worker_actions& out) {
  for (const auto& key : kept_.from(std::max(first, step_from(shards_.find(shard)->applied)))) {
    if (is_planted(config_.bug, planted_bug::ack_forever) && kept_.is_acknowledged(shard, key)) continue;
    out.emplace_back(push_gradient{shard, key.first, key.second});
    contacts_.on_pushed(shard, now);
  }
}

void worker_core::repeat(ps_shard_id id, time_point now, worker_actions& out) {
  const auto* shard = shards_.find(id);
  if (shard == nullptr) return pull(id, now, out);
  const auto before = out.size();
  if (contacts_.is_push_due(id, now)) push_from(id, step_from(shard->applied), now, out);
  const bool over = config_.durability == protocol::durability::off && shard->applied.value >= config_.steps;
  if (out.size() == before && !over && contacts_.is_silent(id, now)) pull(id, now, out);
}

void worker_core::pull(ps_shard_id shard, time_point now, worker_actions& out) {
  if (contacts_.begin_pull(shard, now))
    out.emplace_back(send_pull{shard, {timeline_, config_.self, config_.fence}});
}

/// Most gradients are applied sooner, and need not be looked at.
void worker_core::look_at_overdue(time_point now, worker_actions& out) {
  const auto open = open_step();
  if (!open) return;
  for (const auto& [step, slots] : kept_.take_overdue(*open, now - config_.repeat_after))
    out.emplace_back(check_gradient{{timeline_, step, slots, warnings_.parked_in(step, slots)}});
}

worker_actions worker_core::exit_if_older(incarnation newest) {
  if (over_ || newest <= config_.fence.incarnation) return {};
  over_ = true;
  return {exit_fenced{newest}};
}

// ---- what it knows

std::optional<step_id> worker_core::open_step() const {
  const auto lowest = shards_.lowest();
  return lowest ? std::optional{step_from(*lowest)} : std::nullopt;
}

bool worker_core::trained() const {
  const auto step = open_step();
  return step && step->value >= config_.steps;
}

bool worker_core::is_newest(const protocol::directory& directory) const {
  return std::pair(directory.coordinator, directory.sequence) >= directory_;
}

protocol::worker_status worker_core::status() const {
  using protocol::stall_phase;
  protocol::worker_status made{.worker = config_.self,
                               .self = config_.fence,
                               .timeline = timeline_,
                               .open_step = open_step().value_or(step_id{0}),
                               .lease_of = share_.order_of_lease().first,
                               .lease_sequence = share_.order_of_lease().second,
                               .leased = share_.leased(),
                               .leaving = share_.is_leaving()};
  const auto step = made.open_step;
  if (computing_)
    made.activity = {stall_phase::computing, computing_->slots.begin, {}};
  else if (const auto unheard = shards_.first_unheard())
    made.activity = {stall_phase::connecting, {}, *unheard};
  else if (const auto lacking = parts_.first_lacking(version_before(step), config_.ps_shards);
           lacking && !trained() && help_.next_missing(step, share_, kept_, warnings_))
    made.activity = {stall_phase::fetching, {}, *lacking};
  else
    made.activity = {stall_phase::pushing, {}, {}};
  return made;
}

/// @returns false for one that is not under way.
bool worker_core::end_computation(timeline_id timeline, step_id step, slot_range slots) {
  if (over_ || !computing_ || computing_->timeline != timeline || computing_->step != step ||
      computing_->slots != slots)
    return false;
  computing_.reset();
  return true;
}

} // namespace dlrun::worker
