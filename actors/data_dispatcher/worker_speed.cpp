#include "actors/data_dispatcher/worker_speed.hpp"

#include <algorithm>

namespace dlrun::data_dispatcher {
namespace {

/// A status is late after this long.
protocol::duration quiet(protocol::duration silent_after) { return silent_after / 5; }

} // namespace

void worker_speed::begin(const protocol::worker_status& status) {
  meter_ = {};
  slots_computed_ = status.slots_computed;
  compute_us_ = status.compute_us;
}

/// Who was not heard for several statuses has come to nothing in that time, but for what it is at:
/// that counts when it is done. A long silence is no slowness: a link was cut. A first status tells
/// of a whole life, where this dispatcher is new.
void worker_speed::measure(const protocol::worker_status& status, protocol::duration unheard,
                           protocol::duration silent_after) {
  const auto slots = static_cast<double>(status.slots_computed) - static_cast<double>(slots_computed_);
  auto seconds = (static_cast<double>(status.compute_us) - static_cast<double>(compute_us_)) / 1e6;
  computing_ = status.computing;
  computing_for_ = protocol::duration(static_cast<protocol::duration::rep>(status.computing_us));
  if (unheard > 2 * quiet(silent_after)) {
    const auto idle = computing_ > 0 ? unheard - computing_for_ : unheard;
    seconds = std::max(seconds, protocol::to_seconds(std::min(idle, silent_after)));
  }
  if (slots < 0 || seconds <= 0) return;
  if (compute_us_ == 0 || unheard > silent_after)
    meter_.add_past(slots, seconds);
  else
    meter_.add(slots, seconds);
  slots_computed_ = status.slots_computed;
  compute_us_ = status.compute_us;
}

double worker_speed::at_most(protocol::duration unheard, protocol::duration silent_after) const {
  auto slow_for = std::max(protocol::duration::zero(), unheard - quiet(silent_after));
  if (computing_ > 0) slow_for += computing_for_;
  return meter_.at_most(std::max(1U, computing_), protocol::to_seconds(slow_for));
}

} // namespace dlrun::data_dispatcher
