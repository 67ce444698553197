#include "actors/worker/parameter_parts.hpp"

#include <utility>

namespace dlrun::worker {

std::optional<fetch_outcome> outcome_of(const found_part& found) {
  if (!found.is_reachable) return fetch_outcome::gone;
  if (!found.has_version) return found.shows_all ? fetch_outcome::gone : fetch_outcome::elsewhere;
  return found.is_read_in_place ? std::optional(fetch_outcome::taken) : std::nullopt;
}

bool parameter_parts::may_fetch(ps_shard_id shard, version_id version) const {
  if (fetching_.contains(shard)) return false;
  const auto found = parts_.find(shard);
  return found == parts_.end() ||
         (!found->second.held.contains(version) && !found->second.refused.contains(version));
}

bool parameter_parts::end(const fetch_part& order) {
  const auto asked = fetching_.find(order.shard);
  if (asked == fetching_.end() || asked->second != order) return false;
  fetching_.erase(asked);
  return true;
}

bool parameter_parts::take(const fetch_part& order, fetch_outcome outcome, protocol::time_point now) {
  auto& part = parts_[order.shard];
  if (outcome == fetch_outcome::elsewhere && !std::exchange(part.was_elsewhere, true)) return true;
  part.was_elsewhere = false;
  if (outcome == fetch_outcome::taken) {
    part.held.insert(order.version);
    return true;
  }
  part.refused.insert(order.version);
  part.refused_at = now;
  return false;
}

void parameter_parts::on_tick(protocol::time_point now) {
  for (auto& [shard, part] : parts_)
    if (now - part.refused_at >= retry_after_) part.refused.clear();
}

bool parameter_parts::holds(ps_shard_id shard, version_id version) const {
  const auto found = parts_.find(shard);
  return found != parts_.end() && found->second.held.contains(version);
}

std::optional<ps_shard_id> parameter_parts::first_lacking(version_id version, std::uint32_t ps_shards) const {
  for (ps_shard_id shard{0}; shard.value < ps_shards; ++shard.value)
    if (!holds(shard, version)) return shard;
  return std::nullopt;
}

bool parameter_parts::holds_any(ps_shard_id shard) const {
  const auto found = parts_.find(shard);
  return found != parts_.end() && !found->second.held.empty();
}

void parameter_parts::drop_outside(version_id lowest, version_id highest) {
  for (auto& [shard, part] : parts_)
    std::erase_if(part.held, [&](version_id held) { return held < lowest || held > highest; });
}

void parameter_parts::drop(version_id version) {
  for (auto& [shard, part] : parts_) part.held.erase(version);
}

} // namespace dlrun::worker
