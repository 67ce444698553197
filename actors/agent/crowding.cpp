#include "actors/agent/crowding.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <tuple>
#include <utility>

namespace dlrun::agent {
namespace {

using protocol::role_kind;
using protocol::role_name;

std::uint32_t ps_shards_on(const std::string& host, const placement& places) {
  return static_cast<std::uint32_t>(std::ranges::count_if(places.all(), [&](const auto& entry) {
    return entry.first.kind == role_kind::ps_shard && entry.second.host == host;
  }));
}

/// Why a PS shard is better there; nothing: it is not.
std::optional<std::string> why_better(const std::string& there, const std::string& here,
                                      const placement& places, protocol::planted_bug bug) {
  const auto is = places.standing_of(here), would_be = places.standing_of(there);
  if (!places.is_open(there) || would_be > is || would_be == standing::spared) return std::nullopt;
  if (is == standing::spared) return places.what_is_wrong_with(here);
  if (would_be < is && is_planted(bug, protocol::planted_bug::settled)) return std::nullopt;
  if (would_be < is) return places.what_is_wrong_with(here);
  const std::uint32_t difference = is_planted(bug, protocol::planted_bug::restless) ? 1 : 2;
  const auto many = ps_shards_on(here, places);
  const auto few = ps_shards_on(there, places);
  if (many < few + difference) return std::nullopt;
  return fmt::format("{} PS shards are on {}, and {} on {}", many, here, few, there);
}

/// All PS shards train, and each copy holds all that was committed.
bool are_well(const std::vector<role_view>& roles) {
  return std::ranges::all_of(roles, [](const auto& one) {
    if (one.role.kind == role_kind::keeper) return is_whole(one);
    const bool trains = one.pid != 0 && (one.state == "training" || one.state == "moving");
    return one.role.kind != role_kind::ps_shard || trains;
  });
}

/// Why that role is better elsewhere; nothing: it is not, or nobody knows.
std::optional<std::string> why_misplaced(const role_name& role, const std::vector<role_view>& roles,
                                         const placement& places, protocol::planted_bug bug) {
  const auto here = places.host_of(role);
  if (role.kind == role_kind::ps_shard)
    return why_better(host_of_copy({role.index}, roles, places, bug), here, places, bug);
  if (role.kind != role_kind::keeper || !places.has_better_host_for_copy(role)) return std::nullopt;
  return why_not_kept(role, places);
}

/// PS shards before copies. @param moving was told to move, if any: it goes before others
std::optional<misplaced_role> find_misplaced(const std::vector<role_view>& roles, const placement& places,
                                             const std::optional<misplaced_role>& moving,
                                             protocol::planted_bug bug) {
  std::optional<std::tuple<bool, bool, standing>> highest;
  std::optional<misplaced_role> found;
  for (const auto& one : roles) {
    auto why = why_misplaced(one.role, roles, places, bug);
    const std::tuple rank{moving && one.role == moving->role, one.role.kind == role_kind::ps_shard,
                          places.standing_of(places.host_of(one.role))};
    if (!why || (highest && rank <= *highest)) continue;
    highest = rank;
    found = misplaced_role{one.role, std::move(*why)};
  }
  return found;
}

} // namespace

std::string host_of_copy(ps_shard_id shard, const std::vector<role_view>& roles, const placement& places,
                         protocol::planted_bug bug) {
  std::vector<role_name> whole;
  for (const auto& one : roles)
    if (protocol::keeps_copy_of(one.role, shard) &&
        (is_whole(one) || is_planted(bug, protocol::planted_bug::leave_bare)))
      whole.push_back(one.role);
  const auto* best = places.best_copy(shard, whole);
  return best == nullptr ? std::string{} : places.host_of(*best);
}

std::optional<misplaced_role> shard_spread::next(const std::vector<role_view>& roles, const placement& places,
                                                 bool may_move, protocol::time_point now) {
  if (!may_move || !are_well(roles)) {
    well_since_.reset();
    moving_.reset();
    return std::nullopt;
  }
  if (!well_since_) well_since_ = now;
  if (now - *well_since_ < patience) return std::nullopt;
  moving_ = find_misplaced(roles, places, moving_, bug_);
  return moving_;
}

void shard_spread::rest(protocol::time_point now) {
  moving_.reset();
  well_since_ = now;
}

} // namespace dlrun::agent
