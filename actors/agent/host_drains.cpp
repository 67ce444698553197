#include "actors/agent/host_drains.hpp"

#include "actors/agent/host_events.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

namespace dlrun::agent {
namespace {

using protocol::planted_bug;
using protocol::role_kind;
using protocol::role_name;
using protocol::stop_how;
using protocol::time_point;

/// A worker that has joined and stays.
bool computes(const role_view& role) {
  return role.role.kind == role_kind::worker && role.pid != 0 && role.state != "starting" &&
         role.state != "leaving";
}

const role_view* find(const drain_sight& seen, const role_name& role) {
  const auto found = std::ranges::find(seen.roles, role, &role_view::role);
  return found == seen.roles.end() ? nullptr : &*found;
}

/// Stores that each PS shard is to have.
std::size_t replicas(const drain_sight& seen) {
  std::size_t most = 1;
  for (const auto& one : seen.roles)
    if (one.role.kind == role_kind::keeper)
      most = std::max<std::size_t>(most, protocol::copy_of(one.role) + 2);
  return most;
}

std::vector<role_name> keepers_of(ps_shard_id shard, const drain_sight& seen) {
  std::vector<role_name> all;
  for (const auto& one : seen.roles)
    if (protocol::keeps_copy_of(one.role, shard)) all.push_back(one.role);
  return all;
}

std::vector<std::string> ps_shards_on(const std::string& host, const drain_sight& seen) {
  std::vector<std::string> all;
  for (const auto& [role, where] : seen.places.all())
    if (role.kind == role_kind::ps_shard && where.host == host) all.push_back(protocol::to_string(role));
  return all;
}

/// The root's first.
std::vector<std::string> open_hosts_but(const std::string& host, const std::string& root,
                                        const drain_sight& seen) {
  std::vector<std::string> all{root};
  for (const auto& [other, state] : seen.hosts.states())
    if (other != host && seen.places.is_open(other)) all.push_back(other);
  return all;
}

/// With that host drained fewer are left than each PS shard is to have stores.
bool leaves_no_host_for_copies(const std::string& host, const std::string& root, const drain_sight& seen) {
  return open_hosts_but(host, root, seen).size() < replicas(seen);
}

/// Where they need GPUs, not every host takes them.
bool has_others_for_workers(const std::string& host, placement places) {
  places.set_closed(host, true);
  return places.can_put(protocol::worker_role({0}));
}

std::string refusal_without(const std::string& host, const std::string& root, const drain_sight& seen) {
  const auto wanted = replicas(seen);
  if (wanted == 2)
    return fmt::format(
        "without host {0} the job has host {1} alone, and with durability.replicas: 2 it needs two: let "
        "another one join first ('dlrun token'); or, after 'dlrun stop', 'dlrun resume --hosts' with --set "
        "durability.replicas=auto lets {0} be drained, with no copies meanwhile, and with "
        "durability.replicas=1 and a list without {0} it goes on there alone",
        host, root);
  const auto left = open_hosts_but(host, root, seen);
  return fmt::format(
      "without host {0} the job has the hosts {1}, and with durability.replicas: {2} it needs {2}: let "
      "another one join first ('dlrun token'); or, after 'dlrun stop', 'dlrun resume --hosts' with --set "
      "durability.replicas={3} lets {0} be drained",
      host, fmt::join(left, ", "), wanted, left.size());
}

// ---- what of a host goes next

/// What is to be done about one role that is there: it goes now, or waits for something.
struct verdict {
  std::optional<stop_how> goes{};
  std::string waits_for{};
  bool needs_a_host = false;
};

/// Of a start that was asked to end, and has not yet.
using going = std::function<bool(const role_view&)>;

verdict of_worker(const role_view& worker, const drain_sight& seen, const going& is_going) {
  const auto computes_on = [&](const role_view& one, bool is_open) {
    return computes(one) && !is_going(one) && seen.places.is_open(seen.places.host_of(one.role)) == is_open;
  };
  const bool has_others =
      std::ranges::any_of(seen.roles, [&](const auto& one) { return computes_on(one, true); });
  const auto stays =
      std::ranges::find_if(seen.roles, [&](const auto& one) { return computes_on(one, false); });
  const auto workers = std::ranges::count_if(
      seen.roles, [](const auto& one) { return one.role.kind == role_kind::worker && runs(one); });
  // Else training would stand still until the first of them computes elsewhere.
  if (!has_others && workers > 1 && stays != seen.roles.end() && stays->role == worker.role)
    return {.waits_for = fmt::format("{}, until another worker computes elsewhere", to_string(worker.role))};
  return {.goes = stop_how::leave, .waits_for = fmt::format("{}, which leaves", to_string(worker.role))};
}

verdict of_ps_shard(const role_name& shard, const drain_sight& seen, planted_bug bug) {
  const auto name = protocol::to_string(shard);
  const ps_shard_id id{shard.index};
  const auto keepers = keepers_of(id, seen);
  if (keepers.empty())
    return {.waits_for = fmt::format("{}, whose store has no copy on another host", name),
            .needs_a_host = true};
  const auto goes_to = host_of_copy(id, seen.roles, seen.places, bug);
  if (seen.places.is_open(goes_to))
    return {.goes = stop_how::leave, .waits_for = fmt::format("{}, which moves to {}", name, goes_to)};
  const auto has_host = [&](const auto& one) { return seen.places.has_open_host_for_copy(one); };
  if (std::ranges::none_of(keepers, has_host))
    return {.waits_for = fmt::format("{}, for whose copy there is no other host", name),
            .needs_a_host = true};
  return {.waits_for = fmt::format("{}, until its copy on another host is whole", name)};
}

/// A copy for which no host is in use is given up all the same.
bool may_wait(const drain_sight& seen, planted_bug bug) {
  return (seen.places.copies_may_wait() || is_planted(bug, planted_bug::drop_asked)) &&
         !is_planted(bug, planted_bug::keep_copy);
}

/// "that of ps_shard 1", where the first copy of `shard` was named before.
std::string other_copy(const role_name& keeper, ps_shard_id shard) {
  const auto other = protocol::shard_of(keeper);
  const bool is_first = protocol::copy_of(keeper) == 0 && other != shard;
  return is_first ? fmt::format("that of ps_shard {}", other) : protocol::copy_name(keeper);
}

verdict of_keeper(const role_view& keeper, const role_view* other, const drain_sight& seen,
                  const going& is_going, planted_bug bug) {
  const auto shard = protocol::shard_of(keeper.role);
  const auto name = protocol::copy_name(keeper.role);
  const bool has_host = seen.places.has_open_host_for_copy(keeper.role);
  if (!has_host && !may_wait(seen, bug))
    return {.waits_for = name + ", for which there is no other host", .needs_a_host = true};
  const auto* primary = find(seen, protocol::ps_shard_role(shard));
  if (primary == nullptr || primary->pid == 0 || primary->state == "starting" || is_going(*primary))
    return {.waits_for = fmt::format("{}, until its PS shard runs", name)};
  if (is_whole(keeper) && other != nullptr)
    return {.waits_for = fmt::format("{}, until {} is whole", name, other_copy(other->role, shard))};
  return {.goes = stop_how::kill,
          .waits_for = name + (has_host ? ", which is to be filled elsewhere" : ", which is given up")};
}

/// @param other of a keeper: another one whose copy is not whole, and can be filled; or null
verdict of(const role_view& one, const role_view* other, const drain_sight& seen, const going& is_going,
           planted_bug bug) {
  switch (one.role.kind) {
  case role_kind::worker: return of_worker(one, seen, is_going);
  case role_kind::ps_shard: return of_ps_shard(one.role, seen, bug);
  case role_kind::keeper: return of_keeper(one, other, seen, is_going, bug);
  default: return {.goes = stop_how::end, .waits_for = protocol::to_string(one.role)};
  }
}

/// Is it there? A PS shard that is down is where its store is; any other role that is down is
/// nowhere.
bool is_on(const role_view& one, const std::string& host, const placement& places) {
  return places.host_of(one.role) == host && (runs(one) || one.role.kind == role_kind::ps_shard);
}

/// With the words before it.
std::string and_no_copies(const std::string& host, const drain_view& view) {
  return view.without_copies ? "; " + no_copies_while_drained(host) : "";
}

protocol::job_event stage_event(const std::string& host, const drain_view& view) {
  if (view.stage == drain_stage::drained)
    return host_events::of_agent(
        "host-drained",
        fmt::format("host {} is drained: nothing of the job needs it, and it may be switched off{}", host,
                    and_no_copies(host, view)),
        {.host = host, .reason = {}});
  return host_events::of_agent("host-draining",
                               fmt::format("host {} is in use again: {}", host, view.waits_for),
                               {.host = host, .reason = view.waits_for});
}

protocol::job_event kept_event(const std::string& host, drain_stage stage) {
  const bool is_over = stage == drain_stage::drained;
  return host_events::of_agent(is_over ? "host-drained" : "host-draining",
                               fmt::format("host {} {}drained, as the root before has kept it; 'dlrun drain "
                                           "--undo' lets it be used again",
                                           host, is_over ? "is " : "is being "),
                               {.host = host, .reason = {}});
}

} // namespace

host_drains::host_drains(std::string root, const std::map<std::string, drain_stage>& kept, planted_bug bug)
    : root_{std::move(root)}
    , bug_{bug}
    , spread_{bug} {
  if (is_planted(bug_, planted_bug::forget_drain)) return;
  for (const auto& [host, stage] : kept) {
    hosts_[host] = {.stage = stage};
    untold_.push_back(host);
  }
}

// ---- what the operator wants

result<protocol::job_event> host_drains::begin(const std::string& host, const drain_sight& seen) {
  const auto refuse = [&](std::string why) { return fail(error_code::bad_usage, std::move(why)); };
  if (seen.is_ending) return refuse("the job is ending");
  if (host == root_)
    return refuse(fmt::format("host {} is the root's, where the run folder is: it cannot be drained; 'dlrun "
                              "stop' ends the job there, and 'dlrun resume --hosts' goes on later",
                              host));
  const auto states = seen.hosts.states();
  if (!states.contains(host)) {
    std::vector<std::string> names{root_};
    for (const auto& [name, state] : states) names.push_back(name);
    return refuse(
        fmt::format("there is no host {} in this job; its hosts are {}", host, fmt::join(names, ", ")));
  }
  if (const auto found = hosts_.find(host); found != hosts_.end())
    return refuse(fmt::format("host {} is {} already: --wait waits until it is drained, --undo ends it", host,
                              to_string(found->second.stage)));
  if (states.at(host) == host_state::leaving)
    return refuse(fmt::format("host {} was asked to leave, and goes by itself", host));
  const auto shards = ps_shards_on(host, seen);
  if (!shards.empty() && replicas(seen) == 1)
    return refuse(fmt::format("host {} has the only store of {}: it can be moved where the job keeps copies, "
                              "after 'dlrun stop' and 'dlrun resume --hosts' with --set "
                              "durability.replicas=auto",
                              host, fmt::join(shards, ", ")));
  if (!has_others_for_workers(host, seen.places)) {
    const std::string why =
        seen.places.workers_need_gpus()
            ? "has the last GPUs in use, and without them no worker computes: let another host "
              "that has some join first, or undo the drain of one"
            : "is the last one in use that takes workers, and without it nobody computes: let "
              "another one that does join first, or undo the drain of one";
    return refuse(fmt::format("host {} {}", host, why));
  }
  const bool without_copies = leaves_no_host_for_copies(host, root_, seen);
  if (without_copies && !seen.places.copies_may_wait()) return refuse(refusal_without(host, root_, seen));
  const auto& begun = hosts_[host] = {.without_copies = without_copies};
  return host_events::of_agent("host-draining",
                               fmt::format("host {} is being drained: what runs there moves to other hosts{}",
                                           host, and_no_copies(host, begun)),
                               {.host = host, .reason = {}});
}

result<protocol::job_event> host_drains::undo(const std::string& host, const drain_sight& seen) {
  if (hosts_.erase(host) != 0)
    return host_events::of_agent("drain-undone", fmt::format("host {} may be used again", host),
                                 {.host = host, .reason = {}});
  if (host != root_ && !seen.hosts.states().contains(host))
    return fail(error_code::bad_usage, fmt::format("there is no host {} in this job", host));
  return fail(error_code::bad_usage,
              fmt::format("host {} is not being drained: nothing is to be undone", host));
}

// ---- what goes next

/// It was asked to end, and has not yet.
bool host_drains::is_going(const role_view& one) const {
  const auto asked = asked_.find(one.role);
  return asked != asked_.end() && runs(one) && asked->second.self == one.incarnation;
}

/// The first keeper whose copy is not, or is to be used; null: all are. One that may wait for
/// a host does not count.
/// @param but not this keeper, nor one that no host is there for: nobody waits for those
const role_view* host_drains::not_whole(const drain_sight& seen, const role_view* but) const {
  const auto found = std::ranges::find_if(seen.roles, [&](const auto& one) {
    if (one.role.kind != role_kind::keeper || &one == but) return false;
    const bool has_host = seen.places.has_open_host_for_copy(one.role);
    if (!has_host && (but != nullptr || seen.places.copies_may_wait())) return false;
    const auto* primary = find(seen, protocol::ps_shard_role(protocol::shard_of(one.role)));
    return !is_whole(one) || is_going(one) || (primary != nullptr && is_going(*primary));
  });
  return found == seen.roles.end() ? nullptr : &*found;
}

/// Once a start. One that does not end in time is killed; a worker has all the time it needs, and a
/// PS shard while it gets on.
void host_drains::ask(const role_view& one, departure what, time_point now, drain_steps& out) {
  const bool is_shard = one.role.kind == role_kind::ps_shard;
  if (is_going(one) && !asked_.at(one.role).stays) {
    auto& asked = asked_.at(one.role);
    asked.is_to_go = true;
    if (is_shard && std::exchange(asked.progress, one.progress) != one.progress) asked.since = now;
    const auto patience = is_shard ? move_patience : end_patience;
    if (one.role.kind == role_kind::worker || now - asked.since < patience) return;
    what.how = stop_how::kill;
  }
  asked_[one.role] = {one.incarnation, now, one.progress};
  out.departures.push_back(std::move(what));
}

/// Until it has said so: one that has not heard it may be about to end.
void host_drains::let_stay(const drain_sight& seen, drain_steps& out) {
  for (auto at = asked_.begin(); at != asked_.end();) {
    auto& [role, asked] = *at;
    const auto* view = find(seen, role);
    const bool has_ended = view == nullptr || !is_going(*view);
    if (role.kind != role_kind::ps_shard || asked.is_to_go) {
      ++at;
      continue;
    }
    if (!has_ended) out.stays.push_back(role);
    const bool has_heard = std::exchange(asked.stays, true) && !has_ended && !view->is_leaving;
    at = has_ended || has_heard ? asked_.erase(at) : std::next(at);
  }
}

bool host_drains::is_idle() const {
  return hosts_.empty() && std::ranges::none_of(asked_, [](const auto& entry) {
           return entry.first.kind == role_kind::ps_shard;
         });
}

void host_drains::look_at(const std::string& host, drain_view& view, const drain_sight& seen, time_point now,
                          drain_steps& out) {
  std::vector<std::string> waits;
  view.needs_a_host = false;
  view.without_copies = seen.places.copies_may_wait() && leaves_no_host_for_copies(host, root_, seen);
  for (const auto& one : seen.roles) {
    if (!is_on(one, host, seen.places)) continue;
    const auto* other = one.role.kind == role_kind::keeper ? not_whole(seen, &one) : nullptr;
    auto judged = of(
        one, other, seen, [this](const auto& role) { return is_going(role); }, bug_);
    if (judged.goes && runs(one) && seen.places.has_host(host))
      ask(one, {one.role, *judged.goes, fmt::format("host {} is drained", host)}, now, out);
    waits.push_back(std::move(judged.waits_for));
    view.needs_a_host = view.needs_a_host || judged.needs_a_host;
  }
  const bool is_empty = waits.empty() && !is_planted(bug_, planted_bug::drain_early);
  if (const auto* keeper = not_whole(seen, nullptr);
      is_empty && keeper != nullptr && view.stage == drain_stage::draining) {
    waits.push_back(fmt::format("{}, until it is whole on another host", protocol::copy_name(keeper->role)));
    view.needs_a_host = !seen.places.has_open_host_for_copy(keeper->role);
  }
  view.waits_for = fmt::format("{}", fmt::join(waits, "; "));
  const auto stage = waits.empty() ? drain_stage::drained : drain_stage::draining;
  if (std::exchange(view.stage, stage) == stage) return;
  out.changes[host] = stage;
  out.events.push_back(stage_event(host, view));
}

/// It gets no further, though it was asked to end long ago.
bool host_drains::is_stuck(const role_view& one, time_point now) const {
  if (!is_going(one)) return false;
  const auto& asked = asked_.at(one.role);
  return asked.progress == one.progress && now - asked.since >= move_patience;
}

/// R44. One that does not get away is not killed, since nobody needs it elsewhere.
void host_drains::look_at_crowd(const drain_sight& seen, time_point now, drain_steps& out) {
  const bool drains = std::ranges::any_of(
      hosts_, [](const auto& entry) { return entry.second.stage == drain_stage::draining; });
  const auto misplaced = spread_.next(seen.roles, seen.places, !drains && !seen.is_ending, now);
  if (!misplaced) return;
  const auto& view = *find(seen, misplaced->role);
  if (is_stuck(view, now)) return spread_.rest(now);
  const auto how = misplaced->role.kind == role_kind::keeper ? stop_how::kill : stop_how::leave;
  ask(view, {misplaced->role, how, misplaced->why}, now, out);
}

drain_steps host_drains::next(const drain_sight& seen, time_point now) {
  drain_steps out;
  for (auto& [role, asked] : asked_) asked.is_to_go = false;
  for (const auto& host : std::exchange(untold_, {}))
    if (const auto found = hosts_.find(host); found != hosts_.end())
      out.events.push_back(kept_event(host, found->second.stage));
  for (auto& [host, view] : hosts_) look_at(host, view, seen, now, out);
  look_at_crowd(seen, now, out);
  let_stay(seen, out);
  return out;
}

} // namespace dlrun::agent
