#include "actors/data_dispatcher/version_plan.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace dlrun::data_dispatcher {

using protocol::is_planted;
using protocol::planted_bug;
using protocol::time_point;
using subject = repeats::subject;

version_plan::version_plan(version_plan_config config)
    : self_(config.self)
    , bug_(config.bug)
    , book_(std::move(config.evaluations))
    , schedule_(config.snapshots)
    , repeats_(config.repeat_after) {}

void version_plan::restart() {
  book_.restart();
  schedule_.restart();
}

void version_plan::follow(const durable_shards& shards, timeline_id timeline, time_point now,
                          data_dispatcher_actions& out) {
  give_up_evaluations(shards.statuses(), out);
  name_snapshot(shards, timeline, now, out);
  set_floor(shards, timeline, now, out);
  let_go_on(shards.statuses(), timeline, now, out);
}

// ---- snapshots

void version_plan::name_snapshot(const durable_shards& shards, timeline_id timeline, time_point now,
                                 data_dispatcher_actions& out) {
  const auto naming = schedule_.decide(shards.statuses(), shards.snapshots().back(), now);
  if (!naming.reason.empty())
    out.emplace_back(
        decision_made{"snapshot-named", fmt::format("version {}: {}", naming.version, naming.reason)});
  for (const auto shard : naming.to)
    if (repeats_.is_due(subject::snapshot, protocol::ps_shard_role(shard), naming.version.value, now))
      out.emplace_back(to_ps_shard{shard, protocol::name_snapshot{timeline, naming.version}});
}

/// R13: the second newest version that all have a snapshot of, so that one of them may be damaged;
/// and not above what is to be evaluated.
std::optional<version_id> version_plan::floor_of(const std::vector<version_id>& snapshots) const {
  if (snapshots.size() < 2) return std::nullopt;
  auto floor = snapshots[snapshots.size() - 2];
  for (const auto version : book_.pending())
    floor = std::min(floor, *std::prev(std::upper_bound(snapshots.begin(), snapshots.end(), version)));
  return floor;
}

/// The best of what is below stays. All of it is evaluated, and what is above stays anyway:
/// whatever version training goes back to, the best up to there has its snapshot.
void version_plan::set_floor(const durable_shards& shards, timeline_id timeline, time_point now,
                             data_dispatcher_actions& out) {
  const auto floor = floor_of(shards.snapshots());
  if (!floor || floor->value == 0) return;
  const auto kept = is_planted(bug_, planted_bug::drop_best) ? std::nullopt : book_.best_below(*floor);
  for (const auto& [id, shard] : shards.statuses()) {
    const auto& snapshots = shard.durable.snapshots;
    const auto& restorable = shard.durable.restorable;
    const auto stays = [&](version_id one) { return one >= *floor || one == kept; };
    const bool obeyed = std::all_of(snapshots.begin(), snapshots.end(), stays) &&
                        from(restorable, *floor, kept) == restorable;
    if (!obeyed && repeats_.is_due(subject::floor, protocol::ps_shard_role(id), floor->value, now))
      out.emplace_back(to_ps_shard{
          id, protocol::floor{timeline, *floor, self_, kept.has_value(), kept.value_or(version_id{})}});
  }
}

// ---- evaluation, the end

/// R17: as far as what was evaluated allows.
void version_plan::let_go_on(const shard_statuses& shards, timeline_id timeline, time_point now,
                             data_dispatcher_actions& out) {
  const auto limit = book_.limit();
  for (const auto& [id, shard] : shards)
    if (shard.durable.may_reach < limit &&
        repeats_.is_due(subject::go_on, protocol::ps_shard_role(id), limit.value, now))
      out.emplace_back(to_ps_shard{id, protocol::go_on{timeline, limit}});
}

bool version_plan::awaits(version_id version) const {
  return std::count(book_.pending().begin(), book_.pending().end(), version) > 0;
}

std::optional<version_id> version_plan::to_evaluate(const durable_shards& shards) const {
  const auto all = shards.snapshots();
  for (const auto version : book_.pending())
    if (std::binary_search(all.begin(), all.end(), version)) return version;
  return std::nullopt;
}

/// What a shard can neither show nor make again, e.g. when journal or disk were lost, holds up
/// nothing.
void version_plan::give_up_evaluations(const shard_statuses& shards, data_dispatcher_actions& out) {
  const auto pending = book_.pending(); // giving up changes it
  for (const auto version : pending) {
    const auto is_gone = [&](const auto& entry) {
      const auto& kept = entry.second.durable;
      return entry.second.applied > version && !contains(kept.restorable, version) &&
             !std::count(kept.snapshots.begin(), kept.snapshots.end(), version) &&
             !std::count(kept.planned.begin(), kept.planned.end(), version);
    };
    if (std::none_of(shards.begin(), shards.end(), is_gone)) continue;
    book_.give_up(version);
    out.emplace_back(
        decision_made{"evaluation-given-up",
                      fmt::format("version {} is on no disk any more, it is not evaluated", version)});
  }
}

bool version_plan::is_complete(const durable_shards& shards) const {
  return book_.pending().empty() && shards.snapshots().back() == book_.last();
}

} // namespace dlrun::data_dispatcher
