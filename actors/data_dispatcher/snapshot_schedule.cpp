#include "actors/data_dispatcher/snapshot_schedule.hpp"

#include <algorithm>

namespace dlrun::data_dispatcher {
namespace {

using protocol::duration;
using protocol::time_point;

constexpr std::uint64_t lead_min = 2;
constexpr std::uint64_t lead_max = 4096;
constexpr int spacing = 4;

double milliseconds(duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

bool has(const std::vector<version_id>& all, version_id version) {
  return std::find(all.begin(), all.end(), version) != all.end();
}

bool takes(const protocol::shard_status& shard, version_id version) {
  return has(shard.durable.snapshots, version) || has(shard.durable.planned, version);
}

} // namespace

snapshot_naming snapshot_schedule::decide(const shard_statuses& shards, version_id newest_common,
                                          time_point now) {
  if (!since_) since_ = now;
  follow_up(shards, newest_common, now);
  snapshot_naming decision;
  if (!named_) {
    version_id highest{};
    for (const auto& [id, shard] : shards) highest = std::max(highest, shard.applied);
    const version_id next{highest.value + lead_};
    if (next.value >= config_.steps) return decision;
    decision.reason = why_now(shards, highest, now);
    if (decision.reason.empty()) return decision;
    named_ = naming{next, std::nullopt};
  }
  decision.version = named_->version;
  for (const auto& [id, shard] : shards)
    if (shard.applied < named_->version && !takes(shard, named_->version)) decision.to.push_back(id);
  return decision;
}

/// What became of the version that was named last.
void snapshot_schedule::follow_up(const shard_statuses& shards, version_id newest_common, time_point now) {
  if (newest_common > newest_common_) {
    since_ = named_ && named_->passed ? *named_->passed : now;
    cost_ = now - *since_;
  }
  newest_common_ = newest_common;
  if (!named_) return;
  if (newest_common >= named_->version) {
    lead_ = std::max(lead_min, lead_ - lead_ / 8);
    return named_.reset();
  }
  const auto past = [&](const auto& entry) { return entry.second.applied >= named_->version; };
  const auto missed = [&](const auto& entry) { return past(entry) && !takes(entry.second, named_->version); };
  if (std::any_of(shards.begin(), shards.end(), missed)) {
    lead_ = std::min(lead_max, lead_ * 2);
    return named_.reset();
  }
  if (!named_->passed && std::all_of(shards.begin(), shards.end(), past)) named_->passed = now;
}

std::string snapshot_schedule::why_now(const shard_statuses& shards, version_id highest,
                                       time_point now) const {
  const auto age = now - *since_;
  const auto limit = config_.max_recovery / 2;
  if (highest <= newest_common_ || age < spacing * cost_) return {};
  if (config_.durability == protocol::durability::snapshots) {
    if (age < limit) return {};
    return fmt::format("{:.0f} ms of training are not in a snapshot", milliseconds(age));
  }
  duration replay{};
  for (const auto& [id, shard] : shards)
    replay = std::max(replay, duration(static_cast<std::int64_t>(shard.durable.replay_us)));
  if (replay >= limit) return fmt::format("the log would take {:.0f} ms to replay", milliseconds(replay));
  if (age >= config_.age_max) return fmt::format("the log goes back {:.0f} s", milliseconds(age) / 1e3);
  return {};
}

} // namespace dlrun::data_dispatcher
