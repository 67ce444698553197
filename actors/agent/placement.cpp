#include "actors/agent/placement.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <fmt/format.h>
#include <tuple>
#include <utility>

namespace dlrun::agent {

using protocol::role_kind;
using protocol::role_name;

namespace {

/// That a role keeps busy.
std::uint32_t threads_of(const role_name& role, std::uint32_t threads_per_worker) {
  switch (role.kind) {
  case role_kind::worker: return threads_per_worker;
  case role_kind::ps_shard: return 1;
  default: return 0;
  }
}

} // namespace

placement::placement(std::string root, std::uint32_t threads_per_worker, bool coordinator_moves,
                     bool copies_may_wait)
    : root_{std::move(root)}
    , threads_per_worker_{threads_per_worker}
    , coordinator_moves_{coordinator_moves}
    , copies_may_wait_{copies_may_wait} {}

void placement::add_host(const std::string& name, std::uint32_t cpus) {
  DLRUN_CHECK(cpus > 0, "host {} has cores", name);
  hosts_[name] = cpus;
  gone_.erase(name);
}

void placement::remove_host(const std::string& name, const std::string& why) {
  if (hosts_.erase(name) != 0) gone_[name] = why;
}

void placement::set_closed(const std::string& name, bool is_closed) {
  if (is_closed)
    closed_.insert(name);
  else
    closed_.erase(name);
}

void placement::set_stores(const std::string& name, const std::vector<protocol::held_store>& stores) {
  stores_.set(name, stores);
  std::erase_if(places_, [&](const auto& entry) {
    const auto& [role, where] = entry;
    return role.kind == role_kind::ps_shard && where.host == name &&
           stores_.find(name, {role.index}) == nullptr && find_store_anywhere({role.index}) != nullptr;
  });
}

const std::string* placement::find_store(ps_shard_id shard, bool is_in_reach) const {
  return stores_.best(shard, [&](const std::string& host) -> std::optional<int> {
    if (is_in_reach && !has_host(host)) return std::nullopt;
    return (closed_.contains(host) ? 0 : 2) + (host == root_ ? 0 : 1);
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

const place& placement::put(const role_name& role, bool elsewhere) {
  DLRUN_CHECK(hosts_.contains(root_), "the root's host {} is there", root_);
  const auto* before = find(role);
  const bool is_there = before != nullptr && hosts_.contains(before->host);
  const bool is_drained = is_there && !is_open(before->host) && role.kind != role_kind::ps_shard;
  const bool moves = elsewhere || (coordinator_moves_ && role.kind == role_kind::coordinator);
  const bool yields = role.kind == role_kind::keeper && share_host({role.index});
  if (is_there && !moves && !yields && !is_drained) return *before;
  auto chosen = choose(role, elsewhere);
  if (is_drained && chosen.host == before->host) return *before;
  if (before != nullptr)
    chosen.reason += yields                    ? fmt::format("; its PS shard is on {}", before->host)
                     : is_there && !is_drained ? fmt::format("; it ended on {}", before->host)
                                               : why_moved(*before);
  return places_[role] = std::move(chosen);
}

/// Of a role whose host is closed, or away.
std::string placement::why_moved(const place& before) const {
  return fmt::format("; {} {}", before.host, has_host(before.host) ? "is drained" : gone_.at(before.host));
}

const place& placement::put_on_copy(ps_shard_id shard) {
  const auto role = protocol::ps_shard_role(shard);
  const auto* before = find(role);
  const auto copy_is_on = host_of(protocol::keeper_role(shard));
  const bool is_there = before != nullptr && has_host(before->host);
  if (is_there && (is_open(before->host) || !is_open(copy_is_on))) return *before;
  if (const auto* copy = stores_.find(copy_is_on, shard); is_there && copy != nullptr)
    note_copy(before->host, protocol::held_store{*copy}); // what it leaves has all that the copy has
  place chosen{copy_is_on, "its store is there, a whole copy"};
  if (before != nullptr) chosen.reason += why_moved(*before);
  return places_[role] = std::move(chosen);
}

placement::load placement::load_of(const std::string& host, const role_name& except) const {
  load sum;
  for (const auto& [role, where] : places_) {
    if (where.host != host || role == except) continue;
    sum.threads += threads_of(role, threads_per_worker_);
    if (role.kind == role_kind::ps_shard) ++sum.ps_shards;
    if (role.kind == role_kind::keeper) ++sum.keepers;
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
  std::optional<std::tuple<bool, std::uint32_t, bool, std::uint32_t>> best;
  place chosen;
  for (const auto& [host, cpus] : hosts_) {
    if (!is_open(host)) continue;
    const auto there = load_of(host, role);
    const bool ended_there = before != nullptr && before->host == host;
    const std::tuple cost{ended_there, there.ps_shards, host == root_, there.threads};
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
  std::optional<std::tuple<std::uint32_t, bool, bool, std::uint32_t>> best;
  place chosen;
  for (const auto& [host, cpus] : hosts_) {
    if (!is_open(host)) continue;
    const auto there = load_of(host, role);
    const std::tuple cost{there.ps_shards, there.coordinator, host != root_, there.threads};
    if (best && cost >= *best) continue;
    best = cost;
    const auto others = there.ps_shards == 0
                            ? std::string{"no PS shard is there"}
                            : fmt::format("{} PS shards are there, nowhere fewer", there.ps_shards);
    chosen = {host, host == root_ ? others + ", and the job ends with that host anyway" : others};
  }
  return chosen;
}

bool placement::share_host(ps_shard_id shard) const {
  const auto* keeper = find(protocol::keeper_role(shard));
  return keeper != nullptr && keeper->host == host_of(protocol::ps_shard_role(shard));
}

bool placement::has_open_host_for_copy(ps_shard_id shard) const {
  const auto primary = host_of(protocol::ps_shard_role(shard));
  return std::ranges::any_of(hosts_,
                             [&](const auto& one) { return one.first != primary && is_open(one.first); });
}

bool placement::can_put(const role_name& role) const {
  if (role.kind != role_kind::keeper) return true;
  const auto* primary = find(protocol::ps_shard_role({role.index}));
  if (primary == nullptr) return false;
  const auto before = host_of(role);
  const bool may_stay = !copies_may_wait_ && has_host(before) && before != primary->host;
  return may_stay || has_open_host_for_copy({role.index});
}

place placement::choose_for_keeper(const role_name& role, bool elsewhere) const {
  const auto primary = host_of(protocol::ps_shard_role({role.index}));
  const auto before = elsewhere ? host_of(role) : std::string{};
  const bool may_stay = !has_open_host_for_copy({role.index}); // though that is closed
  std::optional<std::tuple<bool, bool, std::uint32_t, bool>> best;
  place chosen;
  for (const auto& [host, cpus] : hosts_) {
    const bool stays = may_stay && host == host_of(role);
    if (host == primary || (!is_open(host) && !stays)) continue;
    const auto there = load_of(host, role);
    const bool has_none = stores_.find(host, {role.index}) == nullptr;
    const std::tuple cost{host == before, has_none, there.ps_shards + there.keepers, host == root_};
    if (best && cost >= *best) continue;
    best = cost;
    chosen = {host, has_none ? fmt::format("a copy of ps_shard {} belongs on another host than {}",
                                           role.index, primary)
                             : fmt::format("a store of ps_shard {} is there", role.index)};
  }
  DLRUN_CHECK(best.has_value(), "{} has a host", protocol::to_string(role));
  return chosen;
}

place placement::choose_for_worker(const role_name& role) const {
  // Busy threads a core once the worker is there, compared as fractions.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> best;
  place chosen;
  for (const auto& [host, cpus] : hosts_) {
    if (!is_open(host)) continue;
    const auto busy = load_of(host, role).threads;
    const std::pair<std::uint64_t, std::uint64_t> cost{busy + threads_of(role, threads_per_worker_), cpus};
    if (best && cost.first * best->second >= best->first * cost.second) continue;
    best = cost;
    chosen = {host,
              fmt::format("{} threads on {} cores with it, nowhere fewer a core", cost.first, cost.second)};
  }
  return chosen;
}

std::vector<role_name> keepers_in_the_way(const placement& places, std::uint32_t ps_shards) {
  std::vector<role_name> all;
  for (ps_shard_id shard{0}; shard.value < ps_shards; ++shard.value)
    if (places.share_host(shard)) all.push_back(protocol::keeper_role(shard));
  return all;
}

} // namespace dlrun::agent
