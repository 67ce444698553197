#include "actors/ps_shard/copy_wait.hpp"

#include "actors/ps_shard/time_to_keep.hpp"

#include <tuple>

namespace dlrun::ps_shard {
namespace {

using protocol::copy_standing;

auto log_of(const copy_standing& one) {
  return std::tie(one.incarnation, one.timeline, one.end, one.floor, one.restorable);
}
auto snapshots_of(const copy_standing& one) {
  return std::tie(one.incarnation, one.timeline, one.floor, one.snapshots);
}

} // namespace

void copy_wait::waiting::note(const copy_standing& said, protocol::time_point now) {
  furthest = said;
  if (since) since = now;
}

void copy_wait::waiting::tick(bool is_awaited, bool was_stopped, protocol::time_point now) {
  if (!is_awaited)
    since.reset();
  else if (!since || was_stopped)
    since = now;
}

void copy_wait::on_standing(const copy_standing& said, protocol::time_point now) {
  const bool has_more_log =
      log_of(said) != log_of(log_.furthest) || said.record_bytes > log_.furthest.record_bytes;
  const bool has_more_snapshots = snapshots_of(said) != snapshots_of(snapshots_.furthest) ||
                                  said.snapshot_bytes > snapshots_.furthest.snapshot_bytes;
  if (has_more_log) log_.note(said, now);
  if (has_more_snapshots) snapshots_.note(said, now);
  if (!has_more_log && !has_more_snapshots) return;
  either_.note(said, now);
  ++news_;
}

bool copy_wait::is_too_long(protocol::time_point now) const {
  const auto more = time_to_keep(log_.furthest.record_bytes, snapshots_.furthest.snapshot_bytes);
  return log_.is_late(now, more) || snapshots_.is_late(now, more) || either_.is_late(now, more);
}

void copy_wait::on_tick(const awaited_parts& waits, protocol::time_point now) {
  const bool was_stopped = ticked_ && now - *ticked_ >= own_pause_min;
  ticked_ = now;
  log_.tick(waits.log, was_stopped, now);
  snapshots_.tick(waits.snapshots, was_stopped, now);
  either_.tick(waits.either, was_stopped, now);
}

} // namespace dlrun::ps_shard
