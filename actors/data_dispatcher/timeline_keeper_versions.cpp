/// Which versions are kept on disk, evaluated, and the last: the half of timeline_keeper that follows
/// training.
#include "actors/data_dispatcher/timeline_keeper.hpp"

#include <algorithm>

namespace dlrun::data_dispatcher {

using protocol::is_planted;
using protocol::planted_bug;
using protocol::time_point;
using subject = repeats::subject;

// ---- snapshots

void timeline_keeper::name_snapshot(time_point now, data_dispatcher_actions& out) {
  const auto naming = schedule_.decide(shards_, snapshots_everywhere().back(), now);
  if (!naming.reason.empty())
    out.emplace_back(
        decision_made{"snapshot-named", fmt::format("version {}: {}", naming.version, naming.reason)});
  for (const auto shard : naming.to)
    if (repeats_.is_due(subject::snapshot, protocol::ps_shard_role(shard), naming.version.value, now))
      out.emplace_back(send_name_snapshot{shard, {timeline(), naming.version}});
}

/// R13: the second newest version that all have a snapshot of, so that one of them may be damaged; and not
/// above what is to be evaluated.
std::optional<version_id> timeline_keeper::floor_now() const {
  const auto all = snapshots_everywhere();
  if (all.size() < 2) return std::nullopt;
  auto floor = all[all.size() - 2];
  for (const auto version : book_.pending())
    floor = std::min(floor, *std::prev(std::upper_bound(all.begin(), all.end(), version)));
  return floor;
}

/// The best of what is below stays. All of it is evaluated, and what is above stays anyway: whatever version
/// training goes back to, the best up to there has its snapshot.
void timeline_keeper::set_floor(time_point now, data_dispatcher_actions& out) {
  const auto floor = floor_now();
  if (!floor || floor->value == 0) return;
  const auto kept = is_planted(config_.bug, planted_bug::drop_best) ? std::nullopt : book_.best_below(*floor);
  for (const auto& [id, shard] : shards_) {
    const auto& snapshots = shard.durable.snapshots;
    const auto& restorable = shard.durable.restorable;
    const auto stays = [&](version_id one) { return one >= *floor || one == kept; };
    const bool obeyed = std::all_of(snapshots.begin(), snapshots.end(), stays) &&
                        from(restorable, *floor, kept) == restorable;
    if (!obeyed && repeats_.is_due(subject::floor, protocol::ps_shard_role(id), floor->value, now))
      out.emplace_back(
          send_floor{id, {timeline(), *floor, config_.self, kept.has_value(), kept.value_or(version_id{})}});
  }
}

// ---- evaluation, the end

/// R17: as far as what was evaluated allows.
void timeline_keeper::let_go_on(time_point now, data_dispatcher_actions& out) {
  const auto limit = book_.limit();
  for (const auto& [id, shard] : shards_)
    if (shard.durable.may_reach < limit &&
        repeats_.is_due(subject::go_on, protocol::ps_shard_role(id), limit.value, now))
      out.emplace_back(send_go_on{id, {timeline(), limit}});
}

std::optional<protocol::evaluate> timeline_keeper::evaluation_due() const {
  if (writing_ || !everybody_is_here()) return std::nullopt;
  const auto all = snapshots_everywhere();
  for (const auto version : book_.pending())
    if (std::binary_search(all.begin(), all.end(), version)) return protocol::evaluate{timeline(), version};
  return std::nullopt;
}

void timeline_keeper::on_evaluated(const protocol::evaluated& result, data_dispatcher_actions& out) {
  const auto pending = book_.pending();
  if (writing_ || result.timeline != timeline() ||
      !std::count(pending.begin(), pending.end(), result.version))
    return;
  auto course = course_;
  const auto at = std::find_if(course.evaluations.begin(), course.evaluations.end(),
                               [&](const auto& one) { return one.version > result.version; });
  course.evaluations.insert(at, result);
  write(std::move(course), std::nullopt, out);
}

/// What a shard can neither show nor make again, e.g. when journal or disk were lost, holds up nothing.
void timeline_keeper::give_up_evaluations(data_dispatcher_actions& out) {
  const auto pending = book_.pending(); // giving up changes it
  for (const auto version : pending) {
    const auto is_gone = [&](const auto& entry) {
      const auto& kept = entry.second.durable;
      return entry.second.applied > version && !contains(kept.restorable, version) &&
             !std::count(kept.snapshots.begin(), kept.snapshots.end(), version) &&
             !std::count(kept.planned.begin(), kept.planned.end(), version);
    };
    if (std::none_of(shards_.begin(), shards_.end(), is_gone)) continue;
    book_.give_up(version);
    out.emplace_back(
        decision_made{"evaluation-given-up",
                      fmt::format("version {} is on no disk any more, it is not evaluated", version)});
  }
}

bool timeline_keeper::finished() const {
  if (writing_ || going_back_ || course_.lost || !everybody_is_here() || !book_.pending().empty())
    return false;
  if (!to_park_.empty() || parked_slots(course_.history) != course_.parked) return false;
  return snapshots_everywhere().back() == book_.last();
}

bool timeline_keeper::close(timeline_id wanted) {
  closed_ = closed_ || (wanted == timeline() && finished());
  return closed_ && wanted == timeline();
}

} // namespace dlrun::data_dispatcher
