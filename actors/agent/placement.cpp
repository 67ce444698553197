#include "actors/agent/placement.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <fmt/format.h>
#include <optional>
#include <tuple>
#include <utility>

namespace dlrun::agent {

using protocol::role_kind;
using protocol::role_name;

namespace {

constexpr auto no_other_host = "no other host is open, and this one has no cores for the job";

/// That a role keeps busy.
std::uint32_t threads_of(const role_name& role, std::uint32_t threads_per_worker) {
  switch (role.kind) {
  case role_kind::worker: return threads_per_worker;
  case role_kind::ps_shard: return 1;
  default: return 0;
  }
}

/// Once a worker is there: how many share how much of its host. A host that has nothing for them
/// comes last.
struct worker_share {
  std::uint64_t sharers, of;
  std::uint64_t beside; ///< threads that keep its cores busy
};

bool is_less(const worker_share& one, const worker_share& other) {
  const auto here = one.sharers * other.of, there = other.sharers * one.of;
  return here < there || (here == there && one.beside < other.beside);
}

std::string why_not_for_workers(const host_rooms& hosts, const std::string& host) {
  if (hosts.standing_of(host) == standing::spared) return "; " + hosts.what_is_wrong_with(host);
  const bool is_for_others = hosts.rooms().at(host).takes == protocol::host_takes::ps_shards;
  return fmt::format("; {} {}", host, is_for_others ? "takes no workers" : "has no GPUs");
}

} // namespace

placement::placement(std::string root, std::uint32_t threads_per_worker, bool coordinator_moves,
                     bool copies_may_wait, bool workers_need_gpus, protocol::planted_bug bug)
    : root_{std::move(root)}
    , threads_per_worker_{threads_per_worker}
    , coordinator_moves_{coordinator_moves}
    , copies_may_wait_{copies_may_wait}
    , workers_need_gpus_{workers_need_gpus}
    , bug_{bug} {}

void placement::set_stores(const std::string& name, const std::vector<protocol::held_store>& stores) {
  stores_.set(name, stores);
  std::erase_if(places_, [&](const auto& entry) {
    const auto& [role, where] = entry;
    return role.kind == role_kind::ps_shard && where.host == name &&
           stores_.find(name, {role.index}) == nullptr && find_store({role.index}, false) != nullptr;
  });
}

bool placement::takes_workers(const host_room& room) const {
  const bool is_for_others =
      room.takes == protocol::host_takes::ps_shards && !is_planted(bug_, protocol::planted_bug::crowd_in);
  return !is_for_others && (!workers_need_gpus_ || room.gpus > 0);
}

const std::string* placement::find_store(ps_shard_id shard, bool is_there) const {
  return stores_.best(shard, [&](const std::string& host) -> std::optional<int> {
    if (is_there && !has_host(host)) return std::nullopt;
    return (is_closed(host) ? 0 : 2) + (host == root_ ? 0 : 1);
  });
}

const place* placement::find(const role_name& role) const {
  const auto found = places_.find(role);
  return found == places_.end() ? nullptr : &found->second;
}

std::string placement::host_of(const role_name& role) const {
  const auto* where = find(role);
  return where == nullptr ? std::string{} : where->host;
}

void placement::add_host(const std::string& name, const host_room& room) {
  DLRUN_CHECK(room.cpus > 0 || name == root_, "host {} has cores", name);
  host_rooms::add_host(name, room);
  for (auto& [keeper, hosts] : given_up_) hosts.erase(name);
}

const place& placement::put(const role_name& role, bool elsewhere, bool moves) {
  DLRUN_CHECK(has_host(root_), "the root's host {} is there", root_);
  const auto* before = find(role);
  const bool is_there = before != nullptr && has_host(before->host);
  const bool is_drained = is_there && !is_open(before->host) && role.kind != role_kind::ps_shard;
  const bool leaves = elsewhere || (coordinator_moves_ && role.kind == role_kind::coordinator);
  const bool yields = role.kind == role_kind::keeper && is_in_the_way(role, *this);
  const bool is_too_much =
      is_there && role.kind == role_kind::worker &&
      (standing_of(before->host) == standing::spared || !takes_workers(rooms().at(before->host)));
  const bool improves = moves && is_there && role.kind == role_kind::keeper && has_better_host_for_copy(role);
  if (is_there && !leaves && !yields && !is_drained && !is_too_much && !improves) return *before;
  if (elsewhere && is_there && role.kind == role_kind::keeper) given_up_[role].insert(before->host);
  const auto why_better = improves ? why_not_kept(role, *this) : std::string{};
  auto chosen = choose(role, elsewhere);
  if ((is_drained || is_too_much) && chosen.host == before->host) return *before;
  if (before != nullptr)
    chosen.reason += yields        ? fmt::format("; its PS shard is on {}", before->host)
                     : is_too_much ? why_not_for_workers(*this, before->host)
                     : is_drained  ? "; " + what_is_wrong_with(before->host)
                     : improves    ? "; " + why_better
                     : is_there    ? fmt::format("; it ended on {}", before->host)
                                   : "; " + what_is_wrong_with(before->host);
  return places_[role] = std::move(chosen);
}

const role_name* placement::best_copy(ps_shard_id shard, const std::vector<role_name>& whole) const {
  std::optional<std::tuple<bool, timeline_id, version_id, step_id, bool, bool>> highest;
  const role_name* best = nullptr;
  for (const auto& keeper : whole) {
    const auto host = host_of(keeper);
    if (!has_host(host)) continue;
    const auto* held = stores_.find(host, shard);
    const auto store = held == nullptr ? protocol::held_store{.shard = shard} : *held;
    const std::tuple rank{
        is_open(host), store.timeline, store.floor, store.end, standing_of(host) == standing::stays,
        host != root_};
    if (highest && rank <= *highest) continue;
    highest = rank;
    best = &keeper;
  }
  return best;
}

const place& placement::put_on_copy(ps_shard_id shard, const std::vector<role_name>& whole, bool moves) {
  auto copies = whole;
  if (is_planted(bug_, protocol::planted_bug::promote_any))
    for (const auto& [role, where] : places_)
      if (protocol::keeps_copy_of(role, shard)) copies.push_back(role);
  const auto* keeper = best_copy(shard, copies);
  DLRUN_CHECK(keeper != nullptr, "the host of a copy of ps_shard {} is there", shard);
  const auto role = protocol::ps_shard_role(shard);
  const auto* before = find(role);
  const auto copy_is_on = host_of(*keeper);
  const bool is_there = before != nullptr && has_host(before->host);
  const bool is_left = is_there && (moves || !is_open(before->host)) && is_open(copy_is_on);
  if (is_there && !is_left) return *before;
  if (const auto* copy = stores_.find(copy_is_on, shard); is_there && copy != nullptr)
    note_copy(before->host, protocol::held_store{*copy}); // what it leaves has all that the copy has
  place chosen{copy_is_on, "its store is there, a whole copy"};
  if (before != nullptr) chosen.reason += "; " + what_is_wrong_with(before->host);
  return places_[role] = std::move(chosen);
}

placement::load placement::load_of(const std::string& host, const role_name& except) const {
  load sum;
  for (const auto& [role, where] : places_) {
    if (where.host != host || role == except) continue;
    sum.threads += threads_of(role, threads_per_worker_);
    if (role.kind == role_kind::ps_shard) ++sum.ps_shards;
    if (role.kind == role_kind::keeper) ++sum.keepers;
    if (role.kind == role_kind::worker) ++sum.workers;
    if (role.kind == role_kind::coordinator) sum.coordinator = coordinator_moves_;
  }
  return sum;
}

place placement::choose(const role_name& role, bool elsewhere) const {
  switch (role.kind) {
  case role_kind::ps_shard: return choose_for_shard(role);
  case role_kind::worker: return choose_for_worker(role);
  case role_kind::keeper: return choose_for_keeper(role, elsewhere);
  default: return choose_for_coordinator(role);
  }
}

place placement::choose_for_coordinator(const role_name& role) const {
  if (!coordinator_moves_) return {root_, "its journal and the run folder are there"};
  const auto* before = find(role);
  std::optional<std::tuple<bool, bool, std::uint32_t, bool, std::uint32_t>> best;
  place chosen;
  for (const auto& [host, has] : rooms()) {
    if (!is_open(host)) continue;
    const auto there = load_of(host, role);
    const bool ended_there = before != nullptr && before->host == host;
    const std::tuple cost{ended_there, has.preemptible, there.ps_shards, host == root_, there.threads};
    if (best && cost >= *best) continue;
    best = cost;
    chosen = {host, there.ps_shards == 0
                        ? std::string{"its journal is in an etcd, and no PS shard is there"}
                        : fmt::format("its journal is in an etcd; {} PS shards are there, nowhere fewer",
                                      there.ps_shards)};
  }
  return chosen;
}

place placement::choose_for_shard(const role_name& role) const {
  if (const auto* holder = find_store({role.index})) return {*holder, "its store is there"};
  std::optional<std::tuple<standing, bool, std::uint32_t, bool, bool, std::uint32_t>> best;
  place chosen;
  for (const auto& [host, has] : rooms()) {
    if (!is_open(host)) continue;
    const auto there = load_of(host, role);
    const auto is = has.is();
    const std::tuple cost{is,           has.preemptible, there.ps_shards, there.coordinator, host != root_,
                          there.threads};
    if (best && cost >= *best) continue;
    best = cost;
    const auto others = there.ps_shards == 0
                            ? std::string{"no PS shard is there"}
                            : fmt::format("{} PS shards are there, nowhere fewer", there.ps_shards);
    chosen = {host, is == standing::spared        ? no_other_host
                    : is == standing::for_workers ? others + "; no host that takes PS shards is open"
                    : is == standing::preemptible ? others + "; no host that stays is open"
                    : host == root_               ? others + ", and the job ends with that host anyway"
                                                  : others};
  }
  return chosen;
}

bool placement::is_free_for(const std::string& host, const role_name& keeper) const {
  const auto shard = protocol::shard_of(keeper);
  return std::ranges::none_of(places_, [&](const auto& entry) {
    const auto& [role, where] = entry;
    const bool is_other = protocol::keeps_copy_of(role, shard) && role != keeper &&
                          !is_planted(bug_, protocol::planted_bug::share_copies);
    return where.host == host && (is_other || role == protocol::ps_shard_role(shard));
  });
}

bool placement::has_open_host_for_copy(const role_name& keeper) const {
  return std::ranges::any_of(
      rooms(), [&](const auto& one) { return is_open(one.first) && is_free_for(one.first, keeper); });
}

bool placement::shares_machine(const std::string& host, const role_name& keeper) const {
  const auto& machine = rooms().at(host).machine;
  if (machine.empty() || is_planted(bug_, protocol::planted_bug::one_machine)) return false;
  const auto shard = protocol::shard_of(keeper);
  return std::ranges::any_of(places_, [&](const auto& entry) {
    const auto& [role, where] = entry;
    const bool has_store =
        role == protocol::ps_shard_role(shard) || (protocol::keeps_copy_of(role, shard) && role != keeper);
    const auto found = rooms().find(where.host);
    return has_store && where.host != host && found != rooms().end() && found->second.machine == machine;
  });
}

/// The best first.
std::tuple<bool, bool, standing> placement::rank_for_copy(const std::string& host,
                                                          const role_name& keeper) const {
  const auto is = standing_of(host);
  return {is == standing::spared, shares_machine(host, keeper), is};
}

bool placement::has_better_host_for_copy(const role_name& keeper) const {
  const auto here = host_of(keeper);
  if (!has_host(here) || is_planted(bug_, protocol::planted_bug::loyal)) return false;
  const auto rank = rank_for_copy(here, keeper);
  const auto given_up = given_up_.find(keeper);
  return std::ranges::any_of(rooms(), [&](const auto& one) {
    const auto& host = one.first;
    const bool is_tried = given_up != given_up_.end() && given_up->second.contains(host);
    return !is_tried && is_open(host) && is_free_for(host, keeper) && rank_for_copy(host, keeper) < rank;
  });
}

bool placement::can_put(const role_name& role) const {
  if (role.kind == role_kind::worker)
    return std::ranges::any_of(
        rooms(), [&](const auto& one) { return is_open(one.first) && takes_workers(one.second); });
  if (role.kind != role_kind::keeper) return true;
  if (find(protocol::ps_shard_role(protocol::shard_of(role))) == nullptr) return false;
  const auto before = host_of(role);
  const bool may_stay = !copies_may_wait_ && has_host(before) && is_free_for(before, role);
  return may_stay || has_open_host_for_copy(role);
}

place placement::choose_for_keeper(const role_name& role, bool elsewhere) const {
  const auto shard = protocol::shard_of(role);
  const auto before = elsewhere ? host_of(role) : std::string{};
  const bool may_stay = !has_open_host_for_copy(role); // though that is closed
  std::optional<std::tuple<bool, std::tuple<bool, bool, standing>, bool, bool, std::uint32_t, bool>> best;
  place chosen;
  for (const auto& [host, has] : rooms()) {
    const bool stays = may_stay && host == host_of(role);
    if (!is_free_for(host, role) || (!is_open(host) && !stays)) continue;
    const auto there = load_of(host, role);
    const bool has_none = stores_.find(host, shard) == nullptr;
    const std::tuple cost{host == before, rank_for_copy(host, role),       has.preemptible,
                          has_none,       there.ps_shards + there.keepers, host == root_};
    if (best && cost >= *best) continue;
    best = cost;
    chosen = {host, has_none ? fmt::format("a copy of ps_shard {} belongs on another host than {}", shard,
                                           host_of(protocol::ps_shard_role(shard)))
                             : fmt::format("a store of ps_shard {} is there", shard)};
  }
  DLRUN_CHECK(best.has_value(), "{} has a host", protocol::to_string(role));
  return chosen;
}

place placement::choose_for_worker(const role_name& role) const {
  std::optional<worker_share> best;
  place chosen;
  for (const auto& [host, has] : rooms()) {
    if (!is_open(host) || !takes_workers(has)) continue;
    const auto there = load_of(host, role);
    const worker_share share =
        workers_need_gpus_ ? worker_share{there.workers + 1U, has.cpus == 0 ? 0 : has.gpus, there.threads}
                           : worker_share{there.threads + threads_of(role, threads_per_worker_), has.cpus, 0};
    if (best && !is_less(share, *best)) continue;
    best = share;
    chosen = {host, has.cpus == 0        ? no_other_host
                    : workers_need_gpus_ ? fmt::format("{} workers on {} GPUs with it, nowhere fewer a GPU",
                                                       share.sharers, share.of)
                                         : fmt::format("{} threads on {} cores with it, nowhere fewer a core",
                                                       share.sharers, share.of)};
  }
  return chosen;
}

std::string why_not_kept(const role_name& keeper, const placement& places) {
  const auto here = places.host_of(keeper);
  return places.shares_machine(here, keeper)
             ? fmt::format("another store of it is on the machine of {}", here)
             : places.what_is_wrong_with(here);
}

bool is_in_the_way(const role_name& keeper, const placement& places) {
  const auto* where = places.find(keeper);
  const auto shard = protocol::ps_shard_role(protocol::shard_of(keeper));
  return where != nullptr && where->host == places.host_of(shard);
}

std::vector<role_name> keepers_in_the_way(const placement& places) {
  std::vector<role_name> all;
  for (const auto& [role, where] : places.all())
    if (role.kind == role_kind::keeper && is_in_the_way(role, places)) all.push_back(role);
  return all;
}

} // namespace dlrun::agent
