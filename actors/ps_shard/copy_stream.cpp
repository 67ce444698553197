#include "actors/ps_shard/copy_stream.hpp"

#include <algorithm>

namespace dlrun::ps_shard {
namespace {

using protocol::copy_kind;

/// The lowest that the copy lacks. Snapshots go in the order of versions.
std::optional<own_snapshot> next_snapshot(const own_store& mine, const protocol::copy_standing& then) {
  const auto newest = then.snapshots.empty() ? version_id{0} : then.snapshots.back();
  for (const auto& one : mine.snapshots)
    if (one.version > newest && one.version >= then.floor) return one;
  return std::nullopt;
}

bool logs(const own_store& mine, version_id from) {
  return std::ranges::any_of(mine.logged,
                             [&](const auto& range) { return range.first <= from && from < range.last; });
}

/// What the floor leaves of snapshots below it.
std::optional<version_id> kept_of(const own_store& mine) {
  if (mine.snapshots.empty() || mine.snapshots.front().version >= mine.floor) return std::nullopt;
  return mine.snapshots.front().version;
}

/// R26: to the next timeline after that of the copy. One that cannot go back so far begins anew
/// with what it has below.
std::optional<copy_item> next_rewind(const own_store& mine, const protocol::copy_standing& then) {
  for (const auto& entry : mine.history) {
    if (entry.timeline <= then.timeline) continue;
    const auto to = protocol::greatest_up_to(then.restorable, entry.branch);
    return copy_item{copy_kind::rewind, to.value_or(version_id{}), {}, entry.timeline};
  }
  return std::nullopt;
}

void note(const copy_item& item, protocol::copy_standing& then) {
  const version_id after{item.version.value + 1};
  switch (item.kind) {
  case copy_kind::rewind:
    then.timeline = item.timeline;
    then.restorable = protocol::up_to(std::move(then.restorable), item.version);
    then.floor = std::min(then.floor, item.version);
    std::erase_if(then.snapshots, [&](version_id one) { return one > item.version; });
    break;
  case copy_kind::snapshot:
    then.snapshots.push_back(item.version);
    protocol::insert(then.restorable, {item.version, item.version});
    break;
  case copy_kind::record: protocol::insert(then.restorable, {item.version, after}); break;
  case copy_kind::floor: then.floor = item.version; break;
  case copy_kind::hello: break;
  }
  then.end = then.restorable.back().last;
}

std::optional<copy_item> choose(const own_store& mine, const protocol::copy_standing& then) {
  const auto timeline = protocol::newest_timeline(mine.history);
  if (then.timeline > timeline) return std::nullopt; // this PS shard is to follow first
  const auto branch = protocol::branched_since(mine.history, then.timeline);
  const auto is_of_it = [&](version_id version) { return !branch || version <= *branch; };
  if (!is_of_it(then.end)) return next_rewind(mine, then);
  const bool can_follow = logs(mine, then.end) && is_of_it({then.end.value + 1});
  const auto snapshot = next_snapshot(mine, then);
  // That of the branch itself may be of the newer timeline.
  const bool is_of_timeline = snapshot && is_of_it(snapshot->version) && snapshot->timeline <= then.timeline;
  if (is_of_timeline && (snapshot->version <= then.end || !can_follow))
    return copy_item{copy_kind::snapshot, snapshot->version};
  if (can_follow) return copy_item{copy_kind::record, then.end};
  if (then.timeline < timeline) return next_rewind(mine, then);
  if (mine.floor > then.floor && mine.floor <= then.end)
    return copy_item{copy_kind::floor, mine.floor, kept_of(mine)};
  return std::nullopt;
}

} // namespace

void copy_stream::begin(protocol::time_point now) {
  ++stream_;
  number_ = taken_ = 0;
  failed_.reset();
  then_.reset();
  heard_ = now;
}

bool copy_stream::on_standing(const protocol::copy_standing& standing, protocol::time_point now) {
  if (standing.stream != stream_ || !runs() || standing.taken > number_) return false;
  if (standing.taken > taken_ || number_ == standing.taken) heard_ = now;
  taken_ = std::max(taken_, standing.taken);
  if (!then_) then_ = standing;
  if (!standing.failure.empty() && !failed_) failed_ = now;
  return true;
}

bool copy_stream::is_stuck(protocol::time_point now) const {
  if (failed_) return now - *failed_ >= patience;
  return runs() && taken_ < number_ && now - heard_ >= patience;
}

std::optional<copy_item> copy_stream::next(const own_store& mine) {
  if (!then_ || failed_) return std::nullopt;
  const auto item = choose(mine, *then_);
  if (item) note(*item, *then_);
  return item;
}

} // namespace dlrun::ps_shard
