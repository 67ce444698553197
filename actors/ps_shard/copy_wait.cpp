#include "actors/ps_shard/copy_wait.hpp"

#include <tuple>

namespace dlrun::ps_shard {
namespace {

using protocol::copy_standing;
using since = std::optional<protocol::time_point>;

auto log_of(const copy_standing& one) {
  return std::tie(one.incarnation, one.timeline, one.end, one.floor, one.restorable);
}
auto snapshots_of(const copy_standing& one) {
  return std::tie(one.incarnation, one.timeline, one.floor, one.snapshots);
}

void note(bool is_news, const copy_standing& said, copy_standing& furthest, since& waits,
          protocol::time_point now) {
  if (!is_news) return;
  furthest = said;
  if (waits) waits = now;
}

void tick(bool is_awaited, bool was_stopped, since& waits, protocol::time_point now) {
  if (!is_awaited)
    waits.reset();
  else if (!waits || was_stopped)
    waits = now;
}

} // namespace

void copy_wait::on_standing(const copy_standing& said, protocol::time_point now) {
  note(log_of(said) != log_of(log_furthest_) || said.record_bytes > log_furthest_.record_bytes, said,
       log_furthest_, log_since_, now);
  note(snapshots_of(said) != snapshots_of(snapshots_furthest_) ||
           said.snapshot_bytes > snapshots_furthest_.snapshot_bytes,
       said, snapshots_furthest_, snapshots_since_, now);
}

void copy_wait::on_tick(const awaited_parts& waits, protocol::time_point now) {
  const bool was_stopped = ticked_ && now - *ticked_ >= own_pause_min;
  ticked_ = now;
  tick(waits.log, was_stopped, log_since_, now);
  tick(waits.snapshots, was_stopped, snapshots_since_, now);
}

bool copy_wait::is_too_long(protocol::time_point now) const {
  const auto is_late = [&](const since& waits) { return waits && now - *waits > silence_max; };
  return is_late(log_since_) || is_late(snapshots_since_);
}

} // namespace dlrun::ps_shard
