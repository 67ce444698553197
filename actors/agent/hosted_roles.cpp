#include "actors/agent/hosted_roles.hpp"

#include "actors/agent/host_agent_core.hpp"
#include "actors/agent/host_events.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace dlrun::agent {
namespace {

using protocol::fence;
using protocol::role_kind;
using protocol::role_name;
using protocol::start_state;
using protocol::time_point;

std::vector<std::string> names_of(const std::map<std::string, std::uint32_t>& hosts) {
  std::vector<std::string> all;
  for (const auto& [name, cpus] : hosts) all.push_back(name);
  return all;
}

/// However many starts end on a host that is avoided since then, it was one failure.
role_end end_of(const protocol::start_report& report, const std::string& host, const host_trials& trials) {
  role_end end{.cause = fmt::format("{} on host {}", report.why, host),
               .is_lasting = report.is_lasting,
               .exited = report.exited,
               .is_one_of_several = trials.is_avoided(host)};
  if (report.has_slot) end.slot = report.slot;
  if (report.was_killed_in) end.killed_in = report.killed_in;
  end.left = report.left;
  if (report.has_avoided) end.avoided = avoided_gpu{report.avoided, host, report.why_avoided};
  return end;
}

/// Of a start that is over: is its host what is wrong? Not where somebody has killed it. @returns
/// for how long the host is avoided from now on, if it was not
std::optional<protocol::duration> judge(const protocol::start_report& report, const hosted_start& one,
                                        host_trials& trials, time_point now) {
  const bool ended_itself = report.exited || report.state == start_state::not_started;
  if (one.is_heard || one.stop || report.left || !ended_itself) return std::nullopt;
  return trials.on_failed(report.host, now);
}

/// A keeper without another host than that of its PS shard, or a worker without one that has GPUs:
/// nobody waits for it.
void wait_for_host(const role_name& role, const fence& self, placement& places, hosted_actions& out) {
  places.forget(role);
  out.push_back(tell_launch{role, self, role_runs{}});
  out.push_back(role.kind == role_kind::keeper
                    ? host_events::copy_waits(role, self)
                    : host_events::worker_waits(role, self, places.workers_need_gpus()));
}

/// A run that goes on has stores of its PS shards, unless it ended before they began.
void tell_missing_store(const role_name& role, const fence& self, const hosted_roles_config& config,
                        const placement& places, hosted_actions& out) {
  if (role.kind != role_kind::ps_shard || config.hosts_before.empty()) return;
  if (places.find(role) != nullptr || places.find_store({role.index}) != nullptr) return;
  out.push_back(host_events::store_missing(role, self, config.hosts_before));
}

/// The agent that this root started. One that takes over has in those of earlier roots too, and
/// where nothing starts any more it does not matter which job they had.
bool may_join_this_root(std::uint64_t started_by, const hosted_roles_config& config) {
  if (started_by == config.root_process) return true;
  return config.takes_over && (config.gathers || config.roots_of_same_job.contains(started_by));
}

} // namespace

hosted_roles::hosted_roles(hosted_roles_config config)
    : config_{std::move(config)}
    , roster_{config_.rules, names_of(config_.hosts)}
    , placement_{config_.root, config_.threads_per_worker, config_.coordinator_moves, config_.copies_may_wait,
                 config_.workers_need_gpus}
    , admission_{config_.joining, 1 + config_.hosts.size()}
    , starts_{config_.repeat_after}
    , departures_{config_.repeat_after, config_.gathers.has_value()} {
  placement_.add_host(config_.root, {.cpus = config_.root_cpus,
                                     .gpus = config_.root_gpus,
                                     .preemptible = config_.root_preemptible,
                                     .takes = config_.root_takes,
                                     .machine = config_.root_machine});
  placement_.set_stores(config_.root, config_.root_stores);
  for (const auto& [host, stage] : config_.drains) {
    placement_.set_closed(host, true);
    roster_.set_drained(host, stage == drain_stage::drained, {}); // it has not begun
  }
  for (const auto& one : config_.returning)
    if (admission_.await_return(one, roster_)) config_.hosts[one.who.name] = one.who.cpus;
}

hosted_actions hosted_roles::begin(time_point now) {
  hosted_actions out;
  if (!config_.coordinator_moves) out.push_back(host_events::coordinator_stays(config_.root));
  follow(roster_.start(now), now, out);
  return out;
}

// ---- starts

std::vector<protocol::running_start> hosted_roles::take_over(time_point now, hosted_actions& out) {
  return found_.take_over(starts_, placement_, now, out);
}

/// R30: the host of its store, if that is away but may come back. Before its first start: the one
/// that told of the best store, of all that came. Null: there is none to wait for.
const std::string* hosted_roles::host_to_wait_for(const role_name& role) const {
  if (role.kind != role_kind::ps_shard) return nullptr;
  if (is_planted(config_.bug, protocol::planted_bug::silent_first)) return nullptr;
  const auto* before = placement_.find(role);
  const bool is_lost = before == nullptr || !placement_.has_host(before->host);
  if (const auto* keeper = starts_.unheard_copy({role.index}); is_lost && keeper != nullptr)
    return &placement_.find(*keeper)->host;
  const auto* host = before != nullptr ? &before->host : placement_.find_store({role.index}, false);
  const bool is_away = host != nullptr && !placement_.has_host(*host) && roster_.is_expected(*host);
  return is_away ? host : nullptr;
}

hosted_actions hosted_roles::start(const role_name& role, const fence& self, time_point now,
                                   const copy_facts& copies) {
  hosted_actions out;
  hosted_start one{.self = self, .waits_until = now + config_.store_patience};
  one.is_given_up = copies.is_given_up;
  one.moves = copies.moves;
  if (placement_.best_copy({role.index}, copies.whole) != nullptr) one.whole = copies.whole;
  if (!placement_.can_put(role)) {
    wait_for_host(role, self, placement_, out);
  } else if (const auto* host = !one.whole.empty() ? nullptr : host_to_wait_for(role)) {
    out.push_back(host_events::waits(role, self, *host, config_.store_patience));
  } else {
    settle(role, one, now, out);
    return out;
  }
  starts_.put(role, one);
  return out;
}

/// Gives it a place, and orders it there.
void hosted_roles::settle(const role_name& role, hosted_start one, time_point now, hosted_actions& out) {
  const auto* before = placement_.find(role);
  const auto was = before == nullptr ? std::string{} : before->host;
  tell_missing_store(role, one.self, config_, placement_, out);
  const auto& chosen = one.whole.empty() ? placement_.put(role, one.is_given_up, one.moves)
                                         : placement_.put_on_copy({role.index}, one.whole, one.moves);
  if (chosen.host != was) out.push_back(host_events::placed(role, one.self, chosen));
  if (chosen.host == config_.root) {
    starts_.erase({role, one.self.incarnation});
    out.push_back(start_here{role, one.self});
    return;
  }
  one.host = chosen.host;
  one.boot = roster_.boot_of(chosen.host).value_or(0);
  starts_.order(role, std::move(one), now, out);
}

hosted_actions hosted_roles::stop(const role_name& role, const fence& self, protocol::stop_how how,
                                  time_point now) {
  hosted_actions out;
  if (starts_.find(role, self) == nullptr) return out;
  auto& one = *starts_.find({role, self.incarnation});
  if (one.host) {
    starts_.stop(role, one, how, now, out);
  } else {
    starts_.erase({role, self.incarnation});
    out.push_back(tell_launch{role, self, role_end{.cause = "was ended before it had a host"}});
  }
  return out;
}

// ---- what hosts say

result<admission> hosted_roles::admit(const arriving_host& who, time_point now, hosted_actions& out) {
  auto admitted = admission_.admit(who, roster_, now);
  if (!admitted) return admitted;
  config_.hosts[who.name] = who.cpus;
  out.push_back(host_events::enrolled(who.name, who.address));
  return admitted;
}

hosted_actions hosted_roles::on_joined(const protocol::host_joined& joined, time_point now,
                                       std::string& refused) {
  hosted_actions out;
  if (!may_join_this_root(joined.root, config_)) {
    refused = "the job has another root, which does not go on with what this one's ran";
    return out;
  }
  const auto before = roster_.boot_of(joined.host);
  roster_events events;
  refused = roster_.on_joined(joined.host, joined.boot, now, events);
  follow(std::move(events), now, out);
  if (!refused.empty()) return out;
  if (joined.cpus == 0) {
    if (roster_.on_leaving(joined.host)) {
      if (!departures_.are_held()) placement_.remove_host(joined.host, "leaves");
      out.push_back(host_events::leaves(joined.host));
      if (!config_.gathers) send_workers_away(joined.host, starts_, now, out);
      see_off(now, out);
    }
    if (!config_.gathers) return out; // else it stays until its stores are brought
  }
  const auto wanted = config_.hosts.at(joined.host);
  const host_room room{.cpus = std::max(wanted != 0 ? wanted : joined.cpus, 1U),
                       .gpus = joined.gpus,
                       .preemptible = joined.preemptible,
                       .takes = joined.takes,
                       .machine = joined.machine};
  if (config_.gathers || roster_.state_of(joined.host) != host_state::leaving)
    placement_.add_host(joined.host, room);
  if (before != joined.boot) {
    placement_.set_stores(joined.host, joined.stores);
    out.push_back(host_events::joined(joined.host, room));
    if (joined.intake.bytes > 0) out.push_back(host_events::data_fetched(joined));
    out.push_back(watch_beats{joined.host, joined.boot});
    found_.note(joined, starts_);
    if (config_.gathers) end_found(joined, *config_.gathers, starts_, placement_);
  }
  starts_.send_again(joined.host, now, out);
  settle_waiting(now, out);
  return out;
}

hosted_actions hosted_roles::on_report(const protocol::start_report& report, time_point now) {
  hosted_actions out;
  roster_.on_heard(report.host, report.boot, now);
  const bool is_over = report.state != start_state::running;
  if (is_over)
    out.push_back(to_host{report.host, protocol::start_told{report.boot, report.role, report.self}});
  auto* found = starts_.find({report.role, report.self.incarnation});
  if (found == nullptr) {
    if (!is_over && roster_.boot_of(report.host) == report.boot) end_late(report, placement_, out);
    return out;
  }
  auto& one = *found;
  if (one.self != report.self || one.host != report.host || one.boot != report.boot) return out;
  if (!is_over) {
    if (!std::exchange(one.is_answered, true))
      out.push_back(tell_launch{report.role, report.self, role_runs{report.pid}});
    return out;
  }
  if (const auto time = judge(report, one, trials_, now)) {
    placement_.set_closed(report.host, true, closure::avoided);
    out.push_back(host_events::avoided(report.host, report.why, *time));
  }
  starts_.erase({report.role, report.self.incarnation});
  if (report.state == start_state::not_started)
    out.push_back(tell_launch{report.role, report.self,
                              error{report.code, fmt::format("{} (on host {})", report.why, report.host)}});
  else
    out.push_back(tell_launch{report.role, report.self, end_of(report, report.host, trials_)});
  return out;
}

void hosted_roles::on_heartbeat(const protocol::heartbeat& beat) {
  if (auto* start = starts_.find({beat.role, beat.self.incarnation}); start != nullptr && !start->is_heard) {
    start->is_heard = true;
    if (start->host && !trials_.is_avoided(*start->host)) trials_.on_good(*start->host);
  }
  const auto& said = beat.copies.all;
  if (beat.role.kind != role_kind::keeper || beat.store.host.empty() || said.empty()) return;
  if (auto* found = starts_.find({beat.role, beat.self.incarnation}); found != nullptr)
    found->is_unheard = false;
  placement_.note_copy(beat.store.host, {.shard = protocol::shard_of(beat.role),
                                         .timeline = said.front().timeline,
                                         .end = step_from(said.front().end),
                                         .floor = said.front().floor});
}

void hosted_roles::on_work(const protocol::work_report& work, time_point now) {
  roster_.on_heard(work.host, work.boot, now);
  if (roster_.boot_of(work.host) == work.boot) reports_[work.host] = work;
}

hosted_actions hosted_roles::on_sighting(const std::string& host, std::uint64_t boot, const sighting& seen,
                                         time_point now) {
  hosted_actions out;
  follow(roster_.on_sighting(host, boot, seen, now), now, out);
  return out;
}

base::memory_use memory_of(const host_reports& reports, const std::string& host) {
  const auto found = reports.find(host);
  return found == reports.end() ? base::memory_use{}
                                : base::memory_use{found->second.memory_used, found->second.memory_limit};
}

std::vector<seen_work> work_in(const host_reports& reports) {
  std::vector<seen_work> all;
  for (const auto& [host, report] : reports)
    for (const auto& one : report.workers)
      all.push_back({one.role, one.self, one.sequence, one.has_slot ? std::optional{one.at} : std::nullopt});
  return all;
}

// ---- hosts come and go

hosted_actions hosted_roles::on_link_lost(const std::string& host, std::uint64_t boot, time_point now) {
  hosted_actions out;
  roster_.on_link_lost(host, boot, now);
  follow(roster_.tick(now), now, out);
  return out;
}

hosted_actions hosted_roles::on_command_ended(const std::string& host, std::uint64_t attempt,
                                              const std::string& why, time_point now) {
  hosted_actions out;
  follow(roster_.on_command_ended(host, attempt, why, now), now, out);
  return out;
}

void hosted_roles::follow(roster_events events, time_point now, hosted_actions& out) {
  for (auto& event : events) {
    if (const auto* run = std::get_if<run_command>(&event)) {
      out.push_back(*run);
    } else if (const auto* kill = std::get_if<kill_command>(&event)) {
      out.push_back(*kill);
    } else if (const auto* lost = std::get_if<host_lost>(&event)) {
      lose(*lost, now, out);
    } else if (const auto* failed = std::get_if<host_not_started>(&event)) {
      out.push_back(host_events::not_started(*failed));
    } else if (const auto* beats = std::get_if<host_beats>(&event)) {
      out.push_back(
          host_events::beats(*beats, config_.root, config_.root_beats_at, config_.rules.silence_max));
    }
  }
}

void hosted_roles::lose(const host_lost& lost, time_point now, hosted_actions& out) {
  placement_.remove_host(lost.host);
  reports_.erase(lost.host);
  out.push_back(forget_beats{lost.host});
  out.push_back(host_events::gone(lost));
  // It may be alive behind a link that works one way.
  out.push_back(to_host{
      lost.host,
      protocol::dismissal{lost.boot, lost.left ? lost.why : fmt::format("{}: {}", given_up, lost.why)}});
  role_end end{.cause = fmt::format("is lost with host {}: {}", lost.host, lost.why)};
  std::erase_if(starts_.all(), [&](const auto& entry) {
    const auto& [key, one] = entry;
    if (one.host != lost.host || one.boot != lost.boot) return false;
    out.push_back(tell_launch{key.first, one.self, end});
    end.is_one_of_several = true;
    return true;
  });
  settle_waiting(now, out);
}

/// Those whose host is back, or waited for in vain.
void hosted_roles::settle_waiting(time_point now, hosted_actions& out) {
  std::vector<start_key> ready;
  for (const auto& [key, one] : starts_.all())
    if (!one.host && placement_.can_put(key.first) &&
        (now >= one.waits_until || host_to_wait_for(key.first) == nullptr))
      ready.push_back(key);
  for (const auto& key : ready)
    if (placement_.can_put(key.first)) // the last host may be another copy's by now
      settle(key.first, *starts_.find(key), now, out);
}

/// What else runs there than workers ends with it.
void hosted_roles::see_off(time_point now, hosted_actions& out) {
  for (const auto& host : departures_.may_go(roster_, starts_)) follow(roster_.let_go(host, now), now, out);
}

hosted_actions hosted_roles::set_drain(const std::string& host, drain_stage stage, time_point now) {
  hosted_actions out;
  placement_.set_closed(host, stage != drain_stage::none);
  follow(roster_.set_drained(host, stage == drain_stage::drained, now), now, out);
  settle_waiting(now, out);
  return out;
}

hosted_actions hosted_roles::tick(time_point now) {
  hosted_actions out;
  for (const auto& host : trials_.over(now)) placement_.set_closed(host, false, closure::avoided);
  follow(roster_.tick(now), now, out);
  settle_waiting(now, out);
  see_off(now, out);
  starts_.repeat(now, out);
  departures_.repeat_dismissals(roster_, now, out);
  return out;
}

hosted_actions hosted_roles::dismiss(const std::string& reason) {
  hosted_actions out;
  departures_.dismiss(reason, roster_, out);
  for (const auto& event : roster_.close())
    if (const auto* ending = std::get_if<end_command>(&event)) out.push_back(*ending);
  return out;
}

} // namespace dlrun::agent
