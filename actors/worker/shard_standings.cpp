#include "actors/worker/shard_standings.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::worker {

using protocol::is_planted;
using protocol::planted_bug;

bool shard_standings::standing::serves(version_id version) const {
  return applied == version || (applied == version_after(step_from(version)) && serves_previous);
}

shard_standings::shard_standings(std::uint32_t ps_shards, planted_bug bug)
    : ps_shards_{ps_shards}
    , bug_{bug} {
  DLRUN_CHECK(ps_shards >= 1, "a job has at least one PS shard");
}

std::optional<shard_standings::news> shard_standings::hear(const protocol::shard_state& state) {
  auto [at, is_first] = known_.try_emplace(state.shard);
  auto& shard = at->second;
  if (!is_first && state.incarnation < shard.incarnation) return std::nullopt;
  news made{.is_new_start = is_first || state.incarnation > shard.incarnation, .before = shard.applied};
  if (made.is_new_start) shard = {.incarnation = state.incarnation, .highest_ever = shard.highest_ever};
  if (state.applied >= shard.applied) shard.serves_previous = state.serves_previous;
  shard.applied = std::max(shard.applied, state.applied);
  shard.committed = std::max(shard.committed, state.committed);
  shard.highest_ever = std::max(shard.highest_ever, shard.applied);
  if (is_planted(bug_, planted_bug::max_version)) shard.applied = shard.highest_ever;
  made.applied = shard.applied;
  return made;
}

const shard_standings::standing* shard_standings::find(ps_shard_id shard) const {
  const auto found = known_.find(shard);
  return found == known_.end() ? nullptr : &found->second;
}

std::optional<ps_shard_id> shard_standings::first_unheard() const {
  if (is_complete()) return std::nullopt;
  ps_shard_id first{0};
  while (known_.contains(first)) ++first.value;
  return first;
}

std::optional<version_id> shard_standings::lowest() const {
  if (!is_complete()) return std::nullopt;
  const auto least = std::min_element(known_.begin(), known_.end(), [](const auto& left, const auto& right) {
    return left.second.applied < right.second.applied;
  });
  return least->second.applied;
}

bool shard_standings::are_past(step_id step, protocol::durability durability) const {
  if (!is_complete()) return false;
  const bool when_applied =
      durability == protocol::durability::snapshots || is_planted(bug_, planted_bug::drop_on_publish);
  const auto is_past = [&](const auto& entry) {
    return (when_applied ? entry.second.applied : entry.second.committed) > version_before(step);
  };
  if (is_planted(bug_, planted_bug::drop_own_commit))
    return std::any_of(known_.begin(), known_.end(), is_past);
  return std::all_of(known_.begin(), known_.end(), is_past);
}

} // namespace dlrun::worker
