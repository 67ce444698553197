#include "actors/agent/agent_core.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::agent {
namespace {

using protocol::role_kind;
using protocol::role_name;
using protocol::time_point;

/// Before the restart of a role that ended without a sign of life. What frees memory or descriptors
/// meanwhile takes about as long.
constexpr auto first_delay = std::chrono::milliseconds(100);
constexpr auto delay_max = std::chrono::milliseconds(1000);
constexpr auto keeper_delay_max = std::chrono::milliseconds(10'000);

/// Another start of it finds its state on disk, or needs none.
bool is_replaceable(const role_name& role, const agent_core_config& config) {
  return config.state_is_durable || role.kind == role_kind::worker; // a keeper's is, too
}

supervision::child_spec child_of(const role_name& role, const agent_core_config& config) {
  const bool is_keeper = role.kind == role_kind::keeper; // nobody waits for it
  return {.id = protocol::to_string(role),
          .restart = is_replaceable(role, config) ? supervision::restart_type::permanent
                                                  : supervision::restart_type::temporary,
          .patience = config.shutdown_patience,
          .delay_max = is_keeper ? std::optional{keeper_delay_max} : std::nullopt};
}

void tell(const char* event, const role_name& role, incarnation incarnation, std::string text,
          agent_actions& out, protocol::event_numbers numbers = {}) {
  out.push_back(announce{protocol::job_event{event, role, incarnation, std::move(text), std::move(numbers)}});
}

/// @param left copies that are whole
void tell_copy_lost(const role_name& keeper, const protocol::fence& self, std::size_t left,
                    agent_actions& out) {
  const auto with = left == 0   ? std::string{"without a copy on another host"}
                    : left == 1 ? std::string{"with one copy on another host"}
                                : fmt::format("with {} copies on other hosts", left);
  tell("copy-lost", keeper, self.incarnation,
       fmt::format("ps_shard {} goes on {}, until another keeper has filled one", protocol::shard_of(keeper),
                   with),
       out);
}

void tell_restart(managed_role& role, agent_actions& out) {
  if (!std::exchange(role.restart_untold, false)) return;
  const auto name = protocol::to_string(role.name);
  tell("role-restarted", role.name, role.current ? role.current->incarnation : dlrun::incarnation{},
       role.current ? fmt::format("{} starts again under incarnation {}", name, role.current->incarnation)
                    : fmt::format("{} waits to be started again", name),
       out);
}

void kill(managed_role& role, const char* event, std::string text, agent_actions& out) {
  if (!role.current) return;
  tell(event, role.name, role.current->incarnation, std::move(text), out);
  out.push_back(stop_role{role.name, *role.current, protocol::stop_how::kill});
}

protocol::stop_how how_to(supervision::stop_child::kind how) {
  switch (how) {
  case supervision::stop_child::kind::leave: return protocol::stop_how::leave;
  case supervision::stop_child::kind::terminate: return protocol::stop_how::end;
  case supervision::stop_child::kind::kill: break;
  }
  return protocol::stop_how::kill;
}

/// If it is wanted, and there is a fence.
void order_start(managed_role& role, role_book& book, time_point now, agent_actions& out) {
  if (!book.begin(role, now)) return;
  out.push_back(start_role{role.name, *role.current, book.copies().facts_for(role.name, book.roles())});
}

/// @returns false if there was nothing to stop: it was waiting for a fence
bool order_stop(managed_role& role, supervision::stop_child::kind how, agent_actions& out) {
  (how == supervision::stop_child::kind::leave ? role.leaving : role.stopping) = true;
  if (role.current) {
    out.push_back(stop_role{role.name, *role.current, how_to(how)});
    return true;
  }
  role.wanted = false;
  return false;
}

/// At once if it is up, else when it is.
void tell_coordinator(const protocol::role_exited& exited, const managed_role& coordinator,
                      exit_notices& exits, time_point now, agent_actions& out) {
  if (exits.add(exited, coordinator.up, now)) out.push_back(to_coordinator{exited});
}

/// It is to start again, and has used up what its earlier starts have granted.
bool waits_for_grant(const managed_role& coordinator) {
  return coordinator.wanted && !coordinator.current && coordinator.fences.empty();
}

protocol::job_ended failed(std::string why) { return {protocol::job_outcome::failed, std::move(why)}; }

/// What a coordinator that is up has not answered yet.
void tell_order(const scale_orders& orders, const managed_role& coordinator, agent_actions& out) {
  if (const auto due = orders.due(); due && coordinator.up) out.push_back(to_coordinator{*due});
}

std::vector<role_name> roles_in_order(const agent_core_config& config) {
  std::vector<role_name> all{{role_kind::coordinator, 0}};
  for (std::uint32_t i = 0; i < config.ps_shards; ++i) all.push_back({role_kind::ps_shard, i});
  for (std::uint32_t i = 0; i < config.workers; ++i) all.push_back({role_kind::worker, i});
  for (const auto& keeper : protocol::keeper_roles(config.ps_shards, config.copies)) all.push_back(keeper);
  return all;
}

/// Those that are left of what was found are not wanted any more.
void end_found(found_roles& found, agent_actions& out) {
  for (const auto& one : found.take_all())
    out.emplace_back(stop_role{one.role, one.self, protocol::stop_how::kill});
}

supervision::supervisor make_supervisor(const agent_core_config& config) {
  supervision::supervisor_options options;
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
    , book_{config.life, config.ps_shards}
    , judge_{config.workers, config.state_is_durable}
    , orders_{config.agent, config.workers}
    , end_{config.report_patience}
    , grant_wait_{config.grant_patience}
    , journal_wait_{config.journal_patience} {
  for (const auto& role : roles_in_order(config_)) book_.roles().add(role, is_replaceable(role, config_));
  book_.roles().coordinator().fences.add({config_.coordinator});
}

// ---- starting

agent_actions agent_core::start(time_point now, const std::vector<protocol::running_start>& running) {
  agent_actions out;
  for (const auto& one : running)
    if (!book_.adopt(one, now)) found_.add(one);
  if (!running.empty())
    tell("roles-adopted", {role_kind::agent, 0}, {1},
         fmt::format("{} roles on other hosts, which an earlier root started, keep running", running.size()),
         out, {.values = {protocol::named_number("roles", static_cast<double>(running.size()))}});
  follow(supervisor_.start(now), now, out);
  return out;
}

void agent_core::follow(const supervision::actions& actions, time_point now, agent_actions& out) {
  if (const auto& why = supervisor_.gave_up())
    begin_end({protocol::job_outcome::failed, *why, error_code::restart_budget_exceeded}, now, out);
  for (const auto& action : actions) {
    if (const auto* start = std::get_if<supervision::start_child>(&action)) {
      auto& role = book_.roles().of_child(start->id);
      role.generation = start->number;
      role.wanted = !role.current;
      order_start(role, book_, now, out);
      if (role.up) follow(supervisor_.child_started(start->id, start->number, now), now, out);
      tell_restart(role, out);
    } else if (const auto* order = std::get_if<supervision::stop_child>(&action)) {
      stop(*order, now, out);
    } else if (const auto* gave_up = std::get_if<supervision::escalate>(&action)) {
      out.push_back(all_stopped{end_.conclude(
          {protocol::job_outcome::failed, gave_up->reason, error_code::restart_budget_exceeded})});
    } else if (std::holds_alternative<supervision::supervisor_stopped>(action)) {
      out.push_back(all_stopped{end_.conclude(failed("stopped"))});
    }
  }
}

/// The coordinator of a job whose supervisor has given up is the last to go, and may write the
/// report before.
void agent_core::stop(const supervision::stop_child& order, time_point now, agent_actions& out) {
  auto& role = book_.roles().of_child(order.id);
  const bool is_coordinator = role.name.kind == role_kind::coordinator;
  if (is_coordinator && end_.awaits_report() && order.how == supervision::stop_child::kind::terminate) {
    may_coordinator_stop_ = false;
    return;
  }
  if (!order_stop(role, order.how, out))
    follow(supervisor_.child_exited(order.id, role.generation, {"not started"}, now), now, out);
}

agent_actions agent_core::on_grant(const protocol::grant& grant, time_point now) {
  agent_actions out;
  auto* role = book_.roles().find(grant.role);
  if (role == nullptr) return out;
  role->fences.add(grant.fences);
  order_start(*role, book_, now, out);
  return out;
}

agent_actions agent_core::on_start_over(const protocol::start_over& which) {
  agent_actions out;
  if (book_.runs(which.role, which.self))
    vacate(which.role, protocol::stop_how::kill, "the coordinator was told before that it is over", out);
  return out;
}

agent_actions agent_core::on_coordinator_joined(std::uint64_t process, time_point now) {
  agent_actions out;
  orders_.forget_coordinator();
  auto& coordinator = book_.roles().coordinator();
  coordinator.has_joined = true;
  joined_ = {coordinator.current->incarnation, process};
  for (auto& exited : exits_.for_new_coordinator(now)) out.push_back(to_coordinator{std::move(exited)});
  const auto& roles = book_.roles();
  for (const auto& [id, role] : roles.all())
    if (role.up && role.name.kind != role_kind::coordinator)
      out.push_back(to_coordinator{protocol::role_started{role.name, *role.current, role.pid}});
  if (!book_.has_joined(now)) return out;
  follow(supervisor_.child_started(roles.coordinator_id(), roles.coordinator().generation, now), now, out);
  return out;
}

agent_actions agent_core::on_started(const role_name& name, const protocol::fence& self, std::int32_t pid,
                                     time_point now) {
  agent_actions out;
  auto* role = book_.roles().find(name, self);
  if (role == nullptr || !book_.has_started(*role, pid, now)) return out;
  out.push_back(to_coordinator{protocol::role_started{name, self, pid}});
  follow(supervisor_.child_started(protocol::to_string(name), role->generation, now), now, out);
  return out;
}

agent_actions agent_core::on_start_failed(const role_name& name, const protocol::fence& self,
                                          const error& why, time_point now) {
  agent_actions out;
  auto* role = book_.roles().find(name, self);
  if (role == nullptr) return out;
  book_.end(*role, "failed to start");
  role->last_failure = why.message;
  const bool is_keeper = name.kind == role_kind::keeper; // without which the job goes on
  role->is_hopeless = why.code == error_code::bad_usage && !is_keeper;
  const auto text = fmt::format("{} cannot be started: {}", protocol::to_string(name), why.message);
  tell("role-start-failed", name, self.incarnation, text, out);
  // Its fence is used up: without this no other would be issued.
  if (role->is_replaceable)
    tell_coordinator(
        {.role = name, .self = self, .cause = "could not be started: " + why.message, .replaced = true},
        book_.roles().coordinator(), exits_, now, out);
  if (role->is_hopeless) begin_end(failed(text), now, out);
  const auto id = protocol::to_string(name);
  follow(is_keeper ? supervisor_.child_exited(
                         id, role->generation,
                         {.detail = why.message, .settled = false, .counts = false, .had_begun = true}, now)
                   : supervisor_.child_start_failed(id, role->generation, why.message, now),
         now, out);
  return out;
}

// ---- ends

agent_actions agent_core::on_exited(const role_name& name, const protocol::fence& self, const role_end& how,
                                    time_point now) {
  agent_actions out;
  auto* role = book_.roles().find(name, self);
  if (!role) return out;
  const bool expected = end_.is_stopping() || role->stopping;
  // One that was killed while it left had its time.
  const bool left = role->leaving || how.left || book_.reports().state(name) == "leaving";
  book_.end(*role, expected ? "stopped" : "down");
  supervision::child_exit end{how.cause, book_.signs().has_settled(name)};
  if (!expected) end = tell_end(*role, self, how, left, now, out);
  const bool was_whole = book_.copies().end(name, self.incarnation);
  if (name.kind == role_kind::keeper) end.settled = was_whole || left;
  if (was_whole && !expected) {
    const auto shard = protocol::ps_shard_role(protocol::shard_of(name));
    tell_copy_lost(name, self, book_.copies().facts_for(shard, book_.roles()).whole.size(), out);
  }
  // A coordinator is up when it has joined. One that says before that why it cannot go on would say
  // so again.
  const bool is_coordinator = name.kind == role_kind::coordinator;
  end.had_begun = !is_coordinator || !how.exited;
  if (is_coordinator && !expected && !role->has_joined) role->fences.make_next(); // R4: none was granted
  follow(supervisor_.child_exited(protocol::to_string(name), role->generation, end, now), now, out);
  if (expected || left) return out;
  if (const auto why = why_job_ends(*role)) begin_end(failed(*why), now, out);
  return out;
}

/// Of an end that nobody ordered. @returns what the supervisor hears.
supervision::child_exit agent_core::tell_end(managed_role& role, const protocol::fence& self,
                                             const role_end& how, bool left, time_point now,
                                             agent_actions& out) {
  const bool is_moved = !left && role.name.kind == role_kind::coordinator && journal_wait_.on_end();
  const auto& signs = book_.signs();
  auto judged = left ? judge_.left(role, self, how, signs.has_settled(role.name), orders_.workers())
                     : judge_.died(role, self, how, signs, is_moved, now);
  out.push_back(announce{std::move(judged.event)});
  tell_coordinator(judged.exited, book_.roles().coordinator(), exits_, now, out);
  if (how.avoided) {
    book_.avoid(*how.avoided);
    out.push_back(announce{avoided_event(*how.avoided, role.name, self.incarnation)});
  }
  return judged.exit;
}

void agent_core::begin_end(const protocol::job_ended& how, time_point now, agent_actions& out) {
  if (!end_.begin(how)) return;
  if (!book_.roles().coordinator().up) return shut_down(now, out);
  end_.await_report(now);
  out.push_back(to_coordinator{protocol::stop_job{how.outcome, how.reason, how.code}});
}

void agent_core::shut_down(time_point now, agent_actions& out) {
  if (!end_.stop_roles()) return;
  follow(supervisor_.shutdown(now), now, out);
  if (!std::exchange(may_coordinator_stop_, true)) stop({.id = book_.roles().coordinator_id()}, now, out);
}

agent_actions agent_core::on_job_ended(const protocol::job_ended& ended, time_point now) {
  agent_actions out;
  const auto& current = book_.roles().coordinator().current;
  if (end_.is_stopping() || !current || ended.coordinator != current->incarnation) return out;
  end_.hear(ended);
  shut_down(now, out);
  return out;
}

agent_actions agent_core::on_stop(const protocol::stop_job& stop, time_point now) {
  agent_actions out;
  const protocol::job_ended how{stop.outcome, stop.reason, stop.code};
  if (!stop.is_without_report) {
    begin_end(how, now, out);
    return out;
  }
  end_.begin(how);
  shut_down(now, out);
  return out;
}

// ---- how many

result<std::uint64_t> agent_core::on_scale_request(std::uint32_t workers, agent_actions& out) {
  if (end_.is_begun()) return fail(error_code::bad_usage, "the job is ending");
  if (auto why = config_.scale.why_refused(workers); !why.empty())
    return fail(error_code::bad_usage, std::move(why));
  const auto request = orders_.ask(workers);
  tell_order(orders_, book_.roles().coordinator(), out);
  return request;
}

agent_actions agent_core::on_workers_wanted(const protocol::workers_wanted& word, time_point now) {
  agent_actions out;
  const auto before = orders_.workers();
  const auto wanted = orders_.hear(word);
  if (end_.is_stopping()) return out;
  if (!wanted) {
    end_found(found_, out);
    return out;
  }
  tell("workers-scaled", book_.roles().coordinator().name, {},
       fmt::format("{} workers are wanted, {} were", *wanted, before), out,
       {.values = {protocol::named_number("workers", *wanted)}});
  judge_.set_workers(*wanted);
  for (auto worker = before; worker < *wanted; ++worker) {
    const role_name name{role_kind::worker, worker};
    book_.roles().add(name, true);
    if (const auto runs = found_.take(name)) book_.adopt(*runs, now);
    follow(supervisor_.add(child_of(name, config_), now), now, out);
  }
  for (auto worker = *wanted; worker < before; ++worker) {
    const auto id = protocol::to_string(role_name{role_kind::worker, worker});
    auto& role = book_.roles().of_child(id);
    role.dismissed = true;
    role.wanted = false;
    follow(supervisor_.dismiss(id, config_.leave_grace, now), now, out);
  }
  end_found(found_, out);
  return out;
}

// ---- signs of life

agent_actions agent_core::on_heartbeat(const protocol::heartbeat& beat, time_point now) {
  agent_actions out;
  if (!book_.hear(beat, now)) return out;
  outdo(beat.coordinator, out);
  auto& copies = book_.copies();
  for (const auto& keeper : copies.hear(beat, book_.roles()))
    tell("copy-whole", keeper, beat.copies.all[protocol::copy_of(keeper)].counted,
         fmt::format("{} on another host holds all that was committed", protocol::copy_name(keeper)), out);
  for (const auto& keeper : copies.to_end(beat, book_.roles()))
    kill(*book_.roles().find(keeper), "copy-silent",
         fmt::format("ps_shard {} waits for its copy, which gets no further: {} is killed", beat.role.index,
                     protocol::to_string(keeper)),
         out);
  return out;
}

/// R41: roles follow no coordinator that is older than one that they have heard of, or has its
/// number. There is such a one when its journal was older, and this root began with that.
void agent_core::outdo(const protocol::known_coordinator& followed, agent_actions& out) {
  auto& coordinator = book_.roles().coordinator();
  if (!coordinator.current || end_.is_stopping() || coordinator.is_asked(protocol::stop_how::kill) ||
      is_planted(config_.bug, protocol::planted_bug::trust_older))
    return;
  const auto number = coordinator.current->incarnation;
  const bool has_its_number =
      followed.incarnation == number && joined_.incarnation == number && followed != joined_;
  if (followed.incarnation <= number && !has_its_number) return;
  coordinator.fences.go_beyond(followed.incarnation);
  coordinator.leave_for(protocol::stop_how::kill,
                        fmt::format("roles know incarnation {}, of which its journal does not know: "
                                    "older data is in its place",
                                    followed.incarnation));
  out.push_back(stop_role{coordinator.name, *coordinator.current, protocol::stop_how::kill});
}

bool agent_core::vacate(const role_name& which, protocol::stop_how how, const std::string& why,
                        agent_actions& out) {
  auto* role = book_.roles().find(which);
  if (role == nullptr || !role->current || end_.is_stopping()) return false;
  const bool ends_by_itself = which.kind == role_kind::ps_shard && how == protocol::stop_how::leave;
  role->is_to_move = ends_by_itself || which.kind == role_kind::keeper;
  if (role->is_asked(how)) return true;
  // It issues the fences of all: its own next start must have one.
  if (which.kind == role_kind::coordinator && role->fences.size() < journal_wait::fences_min) return false;
  role->leave_for(how, why);
  if (!ends_by_itself) out.push_back(stop_role{role->name, *role->current, how});
  return true;
}

agent_actions agent_core::on_tick(time_point now) {
  agent_actions out;
  const auto silent = book_.signs().tick(now);
  if (end_.is_report_late(now)) shut_down(now, out);
  follow(supervisor_.tick(now), now, out);
  if (end_.is_stopping()) return out;
  for (const auto& name : silent)
    kill(book_.roles().of_child(protocol::to_string(name)), "role-hung",
         fmt::format("{} gives no sign of life and is killed", protocol::to_string(name)), out);
  auto& coordinator = book_.roles().coordinator();
  const bool has_no_journal = book_.reports().state(coordinator.name) == "no-journal";
  if (journal_wait_.is_over(has_no_journal, coordinator.fences.size(), now))
    kill(coordinator, "coordinator-moves", "the coordinator has no way to its journal there", out);
  if (grant_wait_.is_over(waits_for_grant(coordinator), now) &&
      !is_planted(config_.bug, protocol::planted_bug::strand_fenceless)) { // R4: none was granted
    coordinator.fences.make_next();
    order_start(coordinator, book_, now, out);
  }
  tell_order(orders_, coordinator, out);
  return out;
}

agent_actions agent_core::on_work_seen(const seen_work& seen, time_point now) {
  agent_actions out;
  auto* role = book_.roles().find(seen.role, seen.self);
  const bool has_a_grace = role && role->leaving && !role->vacates;
  if (!role || role->stopping || has_a_grace || end_.is_stopping()) return out;
  if (const auto time = book_.signs().look(seen, now))
    kill(*role, "role-hung",
         fmt::format("{} has been in {} for {:.1f} s and is killed", protocol::to_string(seen.role),
                     protocol::describe(seen.at->at), protocol::to_seconds(*time)),
         out);
  return out;
}

} // namespace dlrun::agent
