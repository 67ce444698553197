#include "actors/ps_shard/copy_stream.hpp"

#include "actors/ps_shard/time_to_keep.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace dlrun::ps_shard {
namespace {

using protocol::copy_kind;

/// The lowest that the copy lacks, and would take.
std::optional<version_id> next_snapshot(const own_store& mine, const protocol::copy_standing& then) {
  for (const auto one : mine.snapshots)
    if (one >= then.floor && !std::ranges::binary_search(then.snapshots, one)) return one;
  return std::nullopt;
}

bool logs(const own_store& mine, version_id from) {
  return std::ranges::any_of(mine.logged,
                             [&](const auto& range) { return range.first <= from && from < range.last; });
}

/// What the floor leaves of snapshots below it.
std::optional<version_id> kept_of(const own_store& mine) {
  if (mine.snapshots.empty() || mine.snapshots.front() >= mine.floor) return std::nullopt;
  return mine.snapshots.front();
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
    then.snapshots.insert(std::ranges::upper_bound(then.snapshots, item.version), item.version);
    protocol::insert(then.restorable, {item.version, item.version});
    break;
  case copy_kind::record: protocol::insert(then.restorable, {item.version, after}); break;
  case copy_kind::floor: then.floor = item.version; break;
  case copy_kind::hello: break;
  }
  then.end = then.restorable.back().last;
}

/// R27: as soon as the copy has what the floor leaves, whatever else it lacks: so it holds no more
/// than this store, however far behind it is.
/// @param sent the snapshot that is being sent, which must not be dropped
std::optional<copy_item> next_floor(const own_store& mine, const protocol::copy_standing& then,
                                    const std::optional<copy_item>& sent) {
  const auto has = [&](version_id one) { return std::ranges::binary_search(then.snapshots, one); };
  if (mine.floor <= then.floor || mine.floor > then.end || !has(mine.floor)) return std::nullopt;
  if (sent && sent->version < mine.floor) return std::nullopt;
  const auto kept = kept_of(mine);
  if (kept && *kept >= then.floor && !has(*kept)) return std::nullopt; // below the floor it is not taken
  return copy_item{copy_kind::floor, mine.floor, kept};
}

std::optional<copy_item> choose(const own_store& mine, const protocol::copy_standing& then,
                                const std::optional<copy_item>& sent, protocol::planted_bug bug) {
  const auto timeline = protocol::newest_timeline(mine.history);
  if (then.timeline > timeline) return std::nullopt; // this PS shard is to follow first
  const bool is_late = is_planted(bug, protocol::planted_bug::late_floor);
  if (auto floor = next_floor(mine, then, sent); floor && then.timeline == timeline && !is_late) return floor;
  const auto branch = protocol::branched_since(mine.history, then.timeline);
  const auto is_of_it = [&](version_id version) { return !branch || version <= *branch; };
  if (is_of_it(then.end)) {
    const bool can_follow = logs(mine, then.end) && is_of_it({then.end.value + 1});
    const auto snapshot = sent ? std::nullopt : next_snapshot(mine, then);
    if (snapshot && is_of_it(*snapshot) && (*snapshot <= then.end || !can_follow))
      return copy_item{copy_kind::snapshot, *snapshot, {}, then.timeline};
    if (can_follow) return copy_item{copy_kind::record, then.end, {}, then.timeline};
  }
  if (sent) return std::nullopt; // what follows would overtake it
  if (then.timeline < timeline) return next_rewind(mine, then);
  if (mine.floor > then.floor && mine.floor <= then.end) // the log alone leads to it
    return copy_item{copy_kind::floor, mine.floor, kept_of(mine)};
  return std::nullopt;
}

/// What comes from another process is looked at before anything is concluded from it.
bool is_sound(const protocol::copy_standing& said) {
  const auto touch_or_cross = [](const auto& one, const auto& next) { return one.last >= next.first; };
  const auto is_reversed = [](const auto& one) { return one.last < one.first; };
  return !said.restorable.empty() && std::ranges::none_of(said.restorable, is_reversed) &&
         std::ranges::adjacent_find(said.restorable, touch_or_cross) == said.restorable.end() &&
         std::ranges::adjacent_find(said.snapshots, std::greater_equal{}) == said.snapshots.end();
}

} // namespace

void copy_stream::begin(protocol::time_point now) {
  ++stream_;
  number_ = taken_ = 0;
  failed_.reset();
  snapshot_.reset();
  then_.reset();
  to_keep_ = {};
  heard_ = now;
}

bool copy_stream::on_standing(const protocol::copy_standing& standing, protocol::time_point now) {
  const bool is_overtaken = standing.taken < taken_;
  if (standing.stream != stream_ || !runs() || standing.taken > number_ || is_overtaken ||
      !is_sound(standing))
    return false;
  if (standing.taken > taken_ || number_ == standing.taken) heard_ = now;
  to_keep_ = time_to_keep(standing.record_bytes, standing.snapshot_bytes);
  taken_ = standing.taken;
  if (!then_) then_ = standing;
  if (!standing.failure.empty() && !failed_) failed_ = now;
  return true;
}

bool copy_stream::is_stuck(protocol::time_point now) const {
  if (failed_) return now - *failed_ >= patience;
  return runs() && taken_ < number_ && now - heard_ >= silence_max + to_keep_;
}

std::optional<copy_item> copy_stream::next(const own_store& mine) {
  if (!then_ || failed_) return std::nullopt;
  const auto item = choose(mine, *then_, snapshot_, bug_);
  if (item && item->kind == copy_kind::snapshot)
    snapshot_ = item;
  else if (item)
    note(*item, *then_);
  return item;
}

void copy_stream::on_snapshot_sent() {
  if (const auto sent = std::exchange(snapshot_, std::nullopt)) note(*sent, *then_);
}

} // namespace dlrun::ps_shard
