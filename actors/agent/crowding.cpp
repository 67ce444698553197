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
  if (is == standing::spared) return fmt::format("{} has no cores for the job", here);
  if (would_be < is && is_planted(bug, protocol::planted_bug::settled)) return std::nullopt;
  if (would_be < is) return fmt::format("{} may go at short notice", here);
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

/// @param moving was told to move, if any: it goes before others
std::optional<crowded_shard> find_crowded(const std::vector<role_view>& roles, const placement& places,
                                          const std::optional<crowded_shard>& moving,
                                          protocol::planted_bug bug) {
  std::optional<std::tuple<bool, standing>> highest;
  std::optional<crowded_shard> found;
  for (const auto& one : roles) {
    if (one.role.kind != role_kind::ps_shard) continue;
    const auto here = places.host_of(one.role);
    auto why = why_better(host_of_copy({one.role.index}, roles, places, bug), here, places, bug);
    const std::tuple rank{moving && one.role == moving->role, places.standing_of(here)};
    if (!why || (highest && rank <= *highest)) continue;
    highest = rank;
    found = crowded_shard{one.role, std::move(*why)};
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

std::optional<crowded_shard> shard_spread::next(const std::vector<role_view>& roles, const placement& places,
                                                bool may_move, protocol::time_point now) {
  if (!may_move || !are_well(roles)) {
    well_since_.reset();
    moving_.reset();
    return std::nullopt;
  }
  if (!well_since_) well_since_ = now;
  if (now - *well_since_ < patience) return std::nullopt;
  moving_ = find_crowded(roles, places, moving_, bug_);
  return moving_;
}

void shard_spread::rest(protocol::time_point now) {
  moving_.reset();
  well_since_ = now;
}

} // namespace dlrun::agent
