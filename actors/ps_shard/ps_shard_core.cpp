#include "actors/ps_shard/ps_shard_core.hpp"

#include <dlrun/check.hpp>
#include <utility>

namespace dlrun::ps_shard {

using protocol::durability;
using protocol::is_planted;
using protocol::planted_bug;

ps_shard_core::ps_shard_core(ps_shard_core_config config, loaded_standing restored)
    : config_(std::make_shared<const ps_shard_core_config>(std::move(config)))
    , pipeline_(config_)
    , move_(config_) {
  pipeline_.restart(std::move(restored));
}

ps_shard_actions ps_shard_core::start() {
  ps_shard_actions out{publish{}, send_status{}};
  pipeline_.versions().snapshot_missing(out);
  move_.advance(pipeline_, out);
  pipeline_.apply_next(out);
  return out;
}

// ---- workers

bool ps_shard_core::speaks_for_itself(worker_id worker, const protocol::fence& claimed) const {
  return starts_.speaks_for_itself(worker, claimed);
}

bool ps_shard_core::wants(const protocol::push& push) const {
  const bool ours = push.timeline == timeline() || is_planted(config_->bug, planted_bug::no_timeline);
  return ours && !pipeline_.is_halted() && !starts_.knows_newer(push.worker, push.self.incarnation) &&
         pipeline_.can_use(push);
}

ps_shard_actions ps_shard_core::on_push(const protocol::push& push, value_id value) {
  DLRUN_CHECK(value.value < first_own_value, "value {} is not one of the shell's", value);
  ps_shard_actions out;
  bool is_taken = false;
  if (wants(push)) {
    is_taken = pipeline_.take(push, value, out);
    move_.advance(pipeline_, out);
  }
  if (is_taken) {
    starts_.refuse(push.worker, push.self.incarnation); // it is none: this start is the newest from now on
    has_contribution_to_tell_ |= starts_.note_contribution(push);
    return out;
  }
  out.emplace_back(release{value});
  auto answer = on_pull(question_in(push));
  out.insert(out.end(), answer.begin(), answer.end());
  return out;
}

ps_shard_actions ps_shard_core::on_pull(const protocol::pull& pull,
                                        const std::vector<protocol::slot_range>& on_the_way) {
  if (fenced_) return {};
  if (const auto newest = starts_.refuse(pull.worker, pull.self.incarnation))
    return {send_fenced{pull.worker, *newest}};
  return {send_state{pull.worker, pipeline_.offer(pull, on_the_way)}};
}

bool ps_shard_core::is_next(const protocol::push& push) const {
  return push.timeline == timeline() && push.step == step_from(pipeline_.versions().applied());
}

std::optional<std::uint64_t> ps_shard_core::begin_early(step_id step) { return pipeline_.begin_early(step); }

ps_shard_actions ps_shard_core::on_directory(const protocol::directory& directory) {
  starts_.learn(directory);
  for (const auto& entry : directory.entries) {
    if (entry.role != protocol::ps_shard_role(config_->self) || fenced_ ||
        entry.incarnation <= config_->fence.incarnation)
      continue;
    fenced_ = true;
    pipeline_.halt();
    return {exit_fenced{entry.incarnation}};
  }
  return {};
}

// ---- time, other shards

ps_shard_actions ps_shard_core::on_tick() {
  ps_shard_actions out;
  if (pipeline_.is_halted()) return out;
  pipeline_.repeat_norms(out);
  pipeline_.versions().snapshot_missing(out);
  move_.advance(pipeline_, out);
  return out;
}

ps_shard_actions ps_shard_core::on_norm(const protocol::norm& message) {
  ps_shard_actions out;
  if (pipeline_.is_halted()) return out;
  pipeline_.norms().heard(message, step_from(pipeline_.versions().applied()));
  pipeline_.apply_next(out);
  return out;
}

ps_shard_actions ps_shard_core::on_norm_request(const protocol::norm_request& message) {
  ps_shard_actions out;
  if (!pipeline_.is_halted()) pipeline_.norms().asked(message, out);
  return out;
}

// ---- what the shell has done

ps_shard_actions ps_shard_core::on_measured(step_id step, norm_partials partials) {
  ps_shard_actions out;
  pipeline_.norms().measured(step, std::move(partials), out);
  pipeline_.apply_next(out);
  return out;
}

/// Who waits for a worker's first contribution, or for the end, is told at once.
ps_shard_actions ps_shard_core::on_applied(step_id step, protocol::duration took) {
  ps_shard_actions out;
  pipeline_.on_applied(step, took, out);
  move_.advance(pipeline_, out);
  const bool is_news = std::exchange(has_contribution_to_tell_, false) ||
                       pipeline_.versions().applied().value == config_->steps;
  if (is_news && !pipeline_.is_halted()) out.emplace_back(send_status{});
  return out;
}

ps_shard_actions ps_shard_core::on_committed(version_id version) {
  ps_shard_actions out;
  if (!pipeline_.versions().on_committed(version, out) || pipeline_.is_halted()) return out;
  out.emplace_back(publish{});
  pipeline_.apply_next(out);
  return out;
}

ps_shard_actions ps_shard_core::on_snapshot_durable(timeline_id of, version_id version) {
  ps_shard_actions out;
  if (of != timeline()) return out;
  pipeline_.versions().on_snapshot_durable(version);
  if (pipeline_.is_halted()) return out;
  if (config_->durability == durability::snapshots) out.emplace_back(publish{});
  move_.advance(pipeline_, out);
  if (is_planted(config_->bug, planted_bug::own_floor)) {
    pipeline_.versions().book().dropped_below(version);
    out.emplace_back(drop_below{version});
  }
  out.emplace_back(send_status{});
  pipeline_.apply_next(out);
  return out;
}

ps_shard_actions ps_shard_core::on_snapshot_failed(timeline_id of, version_id version) {
  ps_shard_actions out;
  if (of != timeline()) return out;
  pipeline_.versions().book().failed(version);
  pipeline_.apply_next(out);
  move_.on_snapshot_failed(version, pipeline_, out);
  return out;
}

ps_shard_actions ps_shard_core::on_move(bool is_wanted) {
  ps_shard_actions out;
  move_.hear(is_wanted, pipeline_, out);
  return out;
}

// ---- the dispatcher's orders

ps_shard_actions ps_shard_core::on_name_snapshot(const protocol::name_snapshot& order) {
  const bool is_usable = config_->durability != durability::off && order.timeline == timeline() &&
                         !rewinding_ && order.version > pipeline_.versions().applied() &&
                         order.version.value <= config_->steps;
  if (is_usable) pipeline_.versions().book().ask_for(order.version);
  return {};
}

ps_shard_actions ps_shard_core::on_floor(const protocol::floor& order) {
  if (pipeline_.is_halted() || order.timeline != timeline()) return {};
  const auto kept = order.keeps ? std::optional(order.kept) : std::nullopt;
  auto bound = pipeline_.versions().book().droppable(order.version, order.dispatcher, kept);
  if (is_planted(config_->bug, planted_bug::untagged_status)) // to the letter, not lowered to what is there
    bound = order.version;
  if (!bound) return {};
  pipeline_.versions().book().dropped_below(*bound, kept);
  return {drop_below{*bound, kept}};
}

ps_shard_actions ps_shard_core::on_go_on(const protocol::go_on& order) {
  ps_shard_actions out;
  if (pipeline_.is_halted() || order.timeline != timeline()) return out;
  pipeline_.versions().gate().raise(order.limit);
  pipeline_.apply_next(out);
  return out;
}

ps_shard_actions ps_shard_core::on_pin(const protocol::pin& order) {
  if (pipeline_.is_halted() || order.timeline != timeline()) return {};
  pipeline_.versions().book().set_pin(order.dispatcher, order.version);
  return {send_status{}};
}

ps_shard_actions ps_shard_core::on_probe(const protocol::probe& question) {
  if (fenced_) return {};
  return {send_status{question.id}};
}

/// R16. What cannot be obeyed is answered with where it stands.
ps_shard_actions ps_shard_core::on_rewind(const protocol::rewind& order) {
  if (pipeline_.is_halted() || config_->durability == durability::off) return {};
  if (!is_valid(order.history) || newest_timeline(order.history) != order.timeline) return {};
  if (is_planted(config_->bug, planted_bug::park_in_place) && order.timeline == timeline()) {
    ps_shard_actions out;
    pipeline_.plan().restart(order.history);
    pipeline_.apply_next(out);
    return out;
  }
  if (order.timeline <= timeline() || !pipeline_.versions().book().can_restore(order.version))
    return {send_status{}};
  rewinding_ = true;
  pipeline_.halt();
  return {perform_rewind{order.timeline, order.version, order.history}};
}

ps_shard_actions ps_shard_core::on_rewound(loaded_standing loaded) {
  DLRUN_CHECK(rewinding_, "version {} is loaded, but nobody went back", loaded.version);
  ps_shard_actions out;
  pipeline_.drop_gradients(out);
  rewinding_ = false;
  pipeline_.restart(std::move(loaded));
  if (fenced_) {
    pipeline_.halt();
    return out;
  }
  auto more = start();
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

// ---- where it stands

bool ps_shard_core::has_snapshot(timeline_id wanted, version_id version) const {
  return !rewinding_ && wanted == timeline() && pipeline_.versions().book().has_snapshot(version);
}

protocol::shard_state ps_shard_core::state() const {
  return {.shard = config_->self,
          .incarnation = config_->fence.incarnation,
          .timeline = timeline(),
          .applied = pipeline_.versions().applied(),
          .committed = pipeline_.versions().committed(),
          .serves_previous = pipeline_.versions().serves_previous(),
          .parameters = {},
          .parked = pipeline_.plan().parked()};
}

protocol::shard_status ps_shard_core::status(std::uint64_t probe) const {
  return {.shard = config_->self,
          .self = config_->fence,
          .timeline = timeline(),
          .applied = pipeline_.versions().applied(),
          .committed = pipeline_.versions().committed(),
          .ledger = pipeline_.versions().totals(),
          .contributions = starts_.contributions(),
          .durable = pipeline_.durable(),
          .probe = probe};
}

} // namespace dlrun::ps_shard
