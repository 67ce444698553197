#include "actors/agent/agent_core.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::agent {
namespace {

using protocol::role_kind;
using protocol::role_name;
using protocol::time_point;

/// Ticks further apart than this mean that this process was stopped: silence meanwhile proves
/// nothing.
constexpr auto pause_min = std::chrono::seconds(2);
/// A heartbeat is due each 100 ms.
constexpr auto signs_lately = std::chrono::seconds(1);
/// More than the restarts that a job has before one coordinator comes back from the next.
constexpr std::size_t told_exits_max = 1000;
/// Before the restart of a role that ended without a sign of life. What frees memory or descriptors
/// meanwhile takes about as long.
constexpr auto first_delay = std::chrono::milliseconds(100);
constexpr auto delay_max = std::chrono::milliseconds(1000);

supervision::child_spec child_of(const role_name& role, const agent_core_config& config) {
  const bool replaceable = config.state_is_durable || role.kind == role_kind::worker;
  return {.id = protocol::to_string(role),
          .restart =
              replaceable ? supervision::restart_type::permanent : supervision::restart_type::temporary,
          .shutdown = supervision::shutdown_policy::timeout(config.shutdown_patience)};
}

std::vector<role_name> roles_in_order(const agent_core_config& config) {
  std::vector<role_name> all{{role_kind::coordinator, 0}};
  for (std::uint32_t i = 0; i < config.ps_shards; ++i) all.push_back({role_kind::ps_shard, i});
  for (std::uint32_t i = 0; i < config.workers; ++i) all.push_back({role_kind::worker, i});
  return all;
}

supervision::supervisor make_supervisor(const agent_core_config& config) {
  supervision::supervisor_options options;
  options.restarts = supervision::strategy::one_for_one;
  options.intensity = config.restart_intensity;
  options.period = config.restart_period;
  // Half the period is for delays, so that a failure that repeats exceeds the intensity all the
  // same.
  const auto longest =
      config.restart_period / (2 * (static_cast<std::int64_t>(config.restart_intensity) + 1));
  options.delay.max = std::min<std::chrono::milliseconds>(delay_max, longest);
  options.delay.first = std::min<std::chrono::milliseconds>(first_delay, options.delay.max);
  std::vector<supervision::child_spec> children;
  for (const auto& role : roles_in_order(config)) children.push_back(child_of(role, config));
  auto made = supervision::supervisor::create(options, std::move(children));
  DLRUN_CHECK(made.has_value(), "the validated spec makes a valid supervisor");
  return std::move(*made);
}

} // namespace

agent_core::agent_core(agent_core_config config)
    : config_{config}
    , supervisor_{make_supervisor(config)}
    , excused_{config.workers}
    , patience_{config.slot_timeout} {
  for (const auto& role : roles_in_order(config_)) {
    order_.push_back(protocol::to_string(role));
    roles_[order_.back()].name = role;
  }
  auto& coordinator = roles_.at(order_.front());
  coordinator.fences.push_back(config_.coordinator);
  coordinator.newest_granted = config_.coordinator.incarnation;
}

agent_core::managed_role& agent_core::of_child(const std::string& id) {
  const auto found = roles_.find(id);
  DLRUN_CHECK(found != roles_.end(), "the supervisor knows only our children, not '{}'", id);
  return found->second;
}

agent_core::managed_role* agent_core::find(const role_name& role, const protocol::fence& self) {
  const auto found = roles_.find(protocol::to_string(role));
  return found != roles_.end() && found->second.current == self ? &found->second : nullptr;
}

// ---- starting
// ----------------------------------------------------------------------------------------------------------

agent_actions agent_core::start(time_point now) {
  agent_actions out;
  follow(supervisor_.start(now), now, out);
  return out;
}

void agent_core::follow(const supervision::actions& actions, time_point now, agent_actions& out) {
  for (const auto& action : actions) {
    if (const auto* start = std::get_if<supervision::start_child>(&action)) {
      auto& role = of_child(start->id);
      role.generation = start->number;
      role.wanted = true;
      order_start(role, now, out);
      tell_restart(role, now, out);
    } else if (const auto* stop = std::get_if<supervision::stop_child>(&action)) {
      auto& role = of_child(stop->id);
      const bool kill = stop->how == supervision::stop_child::kind::kill;
      role.stopping = true;
      if (role.current) {
        out.push_back(stop_role{role.name, *role.current, kill});
      } else { // it was waiting for a fence: there is nothing to stop
        role.wanted = false;
        follow(supervisor_.child_exited(stop->id, role.generation,
                                        {supervision::exit_reason::shutdown, "not started"}, now),
               now, out);
      }
    } else if (const auto* gave_up = std::get_if<supervision::escalate>(&action)) {
      if (!ended_)
        ended_ = protocol::job_ended{protocol::job_outcome::failed, gave_up->reason,
                                     error_code::restart_budget_exceeded};
      out.push_back(all_stopped{*ended_});
    } else if (std::holds_alternative<supervision::supervisor_stopped>(action)) {
      out.push_back(
          all_stopped{ended_.value_or(protocol::job_ended{protocol::job_outcome::failed, "stopped"})});
    }
  }
}

void agent_core::order_start(managed_role& role, time_point now, agent_actions& out) {
  if (!role.wanted || role.current || role.is_hopeless) return;
  if (role.fences.empty()) return; // starts when a grant comes
  role.wanted = false;
  role.current = role.fences.front();
  role.fences.pop_front();
  role.heard.reset();
  role.hung = false;
  role.stopping = false;
  role.clock = {};
  role.started = now;
  role.state = "starting";
  out.push_back(start_role{role.name, *role.current});
}

agent_actions agent_core::on_grant(const protocol::grant& grant, time_point now) {
  agent_actions out;
  const auto found = roles_.find(protocol::to_string(grant.role));
  if (found == roles_.end()) return out;
  auto& role = found->second;
  for (const auto& fence : grant.fences) {
    if (fence.incarnation <= role.newest_granted) continue;
    role.newest_granted = fence.incarnation;
    role.fences.push_back(fence);
  }
  order_start(role, now, out);
  return out;
}

bool agent_core::accepts(const protocol::join& join) const {
  const auto& coordinator = roles_.at(order_.front());
  return join.role == coordinator.name && coordinator.current == join.self;
}

agent_actions agent_core::on_coordinator_joined(time_point now) {
  agent_actions out;
  auto& coordinator = roles_.at(order_.front());
  if (coordinator.up) return out;
  coordinator.up = true;
  coordinator.heard = now;
  for (auto exited : told_exits_) {
    exited.again = true;
    out.push_back(to_coordinator{std::move(exited)});
  }
  for (const auto& exited : std::exchange(untold_exits_, {})) tell_coordinator_of(exited, out);
  for (const auto& [id, role] : roles_)
    if (role.up && role.name.kind != role_kind::coordinator)
      out.push_back(to_coordinator{protocol::role_started{role.name, *role.current, role.pid}});
  follow(supervisor_.child_started(order_.front(), coordinator.generation, now), now, out);
  return out;
}

agent_actions agent_core::on_started(const role_name& name, const protocol::fence& self, std::int32_t pid,
                                     time_point now) {
  agent_actions out;
  auto* role = find(name, self);
  if (!role) return out;
  role->pid = pid;
  if (name.kind == role_kind::coordinator) return out; // up when it has joined
  role->up = true;
  out.push_back(to_coordinator{protocol::role_started{name, self, pid}});
  follow(supervisor_.child_started(protocol::to_string(name), role->generation, now), now, out);
  return out;
}

agent_actions agent_core::on_start_failed(const role_name& name, const protocol::fence& self,
                                          const error& why, time_point now) {
  agent_actions out;
  auto* role = find(name, self);
  if (!role) return out;
  role->current.reset();
  role->state = "failed to start";
  role->last_failure = why.message;
  role->is_hopeless = why.code == error_code::bad_usage;
  const auto text = fmt::format("{} cannot be started: {}", protocol::to_string(name), why.message);
  tell("role-start-failed", *role, self.incarnation, text, now, out);
  // Its fence is used up: without this no other would be issued.
  if (is_replaceable(name))
    tell_coordinator_of({.role = name,
                         .self = self,
                         .cause = "could not be started: " + why.message,
                         .replaced = true,
                         .at_us = static_cast<std::uint64_t>(now.time_since_epoch().count())},
                        out);
  if (role->is_hopeless) begin_end(protocol::job_outcome::failed, text, now, out);
  follow(supervisor_.child_start_failed(protocol::to_string(name), role->generation, why.message, now), now,
         out);
  return out;
}

// ---- ends
// --------------------------------------------------------------------------------------------------------------

agent_actions agent_core::on_exited(const role_name& name, const protocol::fence& self, const role_end& how,
                                    time_point now) {
  agent_actions out;
  auto* role = find(name, self);
  if (!role) return out;
  const bool expected = shutting_down_ || role->stopping;
  const bool settled = role->heard.has_value();
  role->current.reset();
  role->up = false;
  role->pid = 0;
  role->state = expected ? "stopped" : "down";
  const auto end = expected ? supervision::child_exit{supervision::exit_reason::shutdown, how.cause, settled}
                            : note_end(*role, self, how, settled, now, out);
  follow(supervisor_.child_exited(protocol::to_string(name), role->generation, end, now), now, out);
  if (!expected) end_if_lost(*role, now, out);
  return out;
}

/// Nobody takes the place of a role that would end in the same way again, or whose state is gone
/// with it.
void agent_core::end_if_lost(const managed_role& role, time_point now, agent_actions& out) {
  const auto name = protocol::to_string(role.name);
  if (role.is_hopeless)
    return begin_end(protocol::job_outcome::failed,
                     fmt::format("{} {} before it gave a sign of life, and would again; its log says more",
                                 name, role.last_failure),
                     now, out);
  if (is_replaceable(role.name)) return;
  begin_end(protocol::job_outcome::failed,
            fmt::format("{} {}; with 'durability.log: off' what it knew was in its memory only, so the job "
                        "cannot go on. Run it again, with another durability.log to survive this",
                        name, role.last_failure),
            now, out);
}

/// Tells of an end that nobody ordered, and whether it counts against a slot (R18): by the role's
/// own doing in the middle of one, or killed because it hung there.
supervision::child_exit agent_core::note_end(managed_role& role, const protocol::fence& self,
                                             const role_end& how, bool settled, time_point now,
                                             agent_actions& out) {
  const auto name = protocol::to_string(role.name);
  const auto silent = now - role.heard.value_or(role.started);
  const bool was_silent = role.hung && silent >= config_.hang_after;
  auto why = was_silent ? fmt::format("gave no sign of life for {:.1f} s, {}", protocol::to_seconds(silent),
                                      how.cause)
                        : how.cause;
  const auto slot = role.hung ? how.killed_in : how.slot;
  if (slot) why += fmt::format(", in {}", protocol::describe(slot->at));
  const auto detected_us = static_cast<std::uint64_t>(std::max<std::int64_t>(0, silent.count()));
  role.last_failure = why;
  role.is_hopeless = how.is_lasting && !settled;
  role.restart_untold = is_replaceable(role.name) && !role.is_hopeless;
  tell("role-exited", role, self.incarnation,
       fmt::format("{} (incarnation {}) {}", name, self.incarnation, why), now, out,
       {.after_us = detected_us});
  tell_coordinator_of({.role = role.name,
                       .self = self,
                       .cause = why,
                       .detected_us = detected_us,
                       .replaced = is_replaceable(role.name),
                       .has_progress = slot.has_value(),
                       .progress = slot.value_or(protocol::slot_progress{}),
                       .at_us = static_cast<std::uint64_t>(now.time_since_epoch().count())},
                      out);
  const bool is_excused = slot && config_.state_is_durable && excused_.excuses(*slot);
  return {how.clean ? supervision::exit_reason::normal : supervision::exit_reason::abnormal, why, settled,
          !is_excused};
}

bool agent_core::is_replaceable(const role_name& role) const {
  return config_.state_is_durable || role.kind == role_kind::worker;
}

/// Kept while no coordinator is up, so that the next one hears of it.
void agent_core::tell_coordinator_of(const protocol::role_exited& exited, agent_actions& out) {
  if (!roles_.at(order_.front()).up) {
    untold_exits_.push_back(exited);
    return;
  }
  out.push_back(to_coordinator{exited});
  told_exits_.push_back(exited);
  if (told_exits_.size() > told_exits_max) told_exits_.pop_front();
}

void agent_core::tell_restart(managed_role& role, time_point now, agent_actions& out) {
  if (!std::exchange(role.restart_untold, false)) return;
  const auto name = protocol::to_string(role.name);
  tell("role-restarted", role, role.current ? role.current->incarnation : dlrun::incarnation{},
       role.current ? fmt::format("{} starts again under incarnation {}", name, role.current->incarnation)
                    : fmt::format("{} waits to be started again", name),
       now, out);
}

void agent_core::begin_end(protocol::job_outcome outcome, const std::string& reason, time_point now,
                           agent_actions& out, error_code code) {
  if (ended_) return;
  ended_ = protocol::job_ended{outcome, reason, code};
  const auto& coordinator = roles_.at(order_.front());
  if (!coordinator.up) return shut_down(now, out);
  report_due_ = now + config_.report_patience;
  out.push_back(to_coordinator{protocol::stop_job{outcome, reason, code}});
}

void agent_core::shut_down(time_point now, agent_actions& out) {
  if (std::exchange(shutting_down_, true)) return;
  report_due_.reset();
  follow(supervisor_.shutdown(now), now, out);
}

agent_actions agent_core::on_job_ended(const protocol::job_ended& ended, time_point now) {
  agent_actions out;
  if (shutting_down_) return out;
  if (!ended_) ended_ = ended;
  shut_down(now, out);
  return out;
}

agent_actions agent_core::on_stop(const protocol::stop_job& stop, time_point now) {
  agent_actions out;
  begin_end(stop.outcome, stop.reason, now, out, stop.code);
  return out;
}

// ---- signs of life
// -----------------------------------------------------------------------------------------------------

void agent_core::on_heartbeat(const protocol::heartbeat& beat, time_point now) {
  if (beat.role.kind == role_kind::data_dispatcher) {
    dispatcher_ = role_view{beat.role, 0, beat.self.incarnation, beat.state};
    return;
  }
  auto* role = find(beat.role, beat.self);
  if (!role) return;
  role->heard = now;
  role->state = beat.state;
  role->step = beat.step;
  role->durable_step = beat.durable_step;
  if (!beat.has_metrics) return;
  metrics_ = beat.metrics;
  metrics_step_ = beat.step;
}

agent_actions agent_core::on_tick(time_point now) {
  agent_actions out;
  if (last_tick_ && now - *last_tick_ > pause_min)
    for (auto& [id, role] : roles_)
      if (role.heard) role.heard = now;
  last_tick_ = now;
  if (report_due_ && now >= *report_due_) shut_down(now, out);
  follow(supervisor_.tick(now), now, out);
  if (shutting_down_) return out;
  check_silence(now, out);
  check_coordinator(now, out);
  return out;
}

/// It issues the fences of all, its own too. One that has used them up before it was there comes
/// back no more.
void agent_core::check_coordinator(time_point now, agent_actions& out) {
  const auto& coordinator = roles_.at(order_.front());
  const bool waits = coordinator.wanted && !coordinator.current && coordinator.fences.empty();
  if (!waits) return stranded_since_.reset();
  if (!stranded_since_) stranded_since_ = now; // a grant may be on its way
  if (now - *stranded_since_ < config_.grant_patience) return;
  begin_end(
      protocol::job_outcome::failed,
      fmt::format("the coordinator cannot be started again: {}. When that is mended 'dlrun resume' goes on",
                  coordinator.last_failure),
      now, out);
}

void agent_core::check_silence(time_point now, agent_actions& out) {
  for (auto& [id, role] : roles_) {
    if (!role.current || role.hung) continue;
    const auto since = role.heard.value_or(role.started);
    if (now - since < (role.heard ? config_.hang_after : config_.start_patience)) continue;
    role.hung = true;
    tell("role-hung", role, role.current->incarnation,
         fmt::format("{} gives no sign of life and is killed", id), now, out);
    out.push_back(stop_role{role.name, *role.current, true});
  }
}

agent_actions agent_core::on_work_seen(const seen_work& seen, time_point now) {
  agent_actions out;
  auto* role = find(seen.role, seen.self);
  if (!role || role->hung || role->stopping || shutting_down_) return out;
  const bool gives_signs = role->heard && now - *role->heard < signs_lately;
  patience_.note(role->clock.look(seen.sequence, gives_signs && seen.at, now));
  if (!seen.at || role->clock.time() < patience_.time()) return out;
  role->hung = true;
  tell("role-hung", *role, seen.self.incarnation,
       fmt::format("{} has been in {} for {:.1f} s and is killed", protocol::to_string(seen.role),
                   protocol::describe(seen.at->at), protocol::to_seconds(role->clock.time())),
       now, out);
  out.push_back(stop_role{seen.role, seen.self, true});
  return out;
}

void agent_core::tell(const char* event, const managed_role& role, dlrun::incarnation incarnation,
                      std::string text, time_point now, agent_actions& out, protocol::event_numbers numbers) {
  out.push_back(announce{protocol::job_event{event, role.name, incarnation,
                                             static_cast<std::uint64_t>(now.time_since_epoch().count()),
                                             std::move(text), std::move(numbers)}});
}

// ---- views
// -------------------------------------------------------------------------------------------------------------

std::vector<role_view> agent_core::roles() const {
  std::vector<role_view> all;
  for (const auto& id : order_) {
    const auto& role = roles_.at(id);
    all.push_back(
        {role.name, role.pid, role.current ? role.current->incarnation : dlrun::incarnation{}, role.state});
    if (role.name.kind != role_kind::coordinator || !dispatcher_) continue;
    all.push_back(*dispatcher_);
    all.back().pid = role.pid;
    if (!role.up) all.back().state = role.state;
  }
  return all;
}

std::uint64_t agent_core::lowest_of_ps_shards(std::uint64_t managed_role::*step) const {
  std::optional<std::uint64_t> lowest;
  for (const auto& [id, role] : roles_)
    if (role.name.kind == role_kind::ps_shard) lowest = std::min(lowest.value_or(role.*step), role.*step);
  return lowest.value_or(0);
}

} // namespace dlrun::agent
