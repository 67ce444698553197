/// How fast a worker computes.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace dlrun::protocol {

/// Pure: measures slots per second of work, in which old work fades. It fades by the time worked
/// since, so that a hiccup weighs as much as the time it took; and by at most `fading_max` for one
/// report, so that the speed for slots that take long is a mean over several.
class speed_meter {
public:
  /// So much was computed in so much time.
  void add(double slots, double seconds) {
    const double kept = std::max(1 - fading_max, std::exp(-seconds / memory_seconds));
    slots_ = slots_ * kept + slots;
    seconds_ = seconds_ * kept + seconds;
  }
  /// As add(), of work that nobody knows the times of: a worker's whole life, or what it did while
  /// it was cut off. It tells the speed; it weighs no more than what a meter keeps of short words,
  /// so that what happens now is seen as soon as ever.
  void add_past(double slots, double seconds) {
    const double part = seconds > memory_seconds ? memory_seconds / seconds : 1;
    add(slots * part, seconds * part);
  }
  /// 0: not known yet.
  double slots_per_second() const { return seconds_ > 0 ? slots_ / seconds_ : 0; }
  /// What it would be if `slots` that it is at for so long were done now; infinite before any work.
  double at_most(double slots, double seconds) const {
    const double all = seconds_ + seconds;
    return all > 0 ? (slots_ + slots) / all : std::numeric_limits<double>::infinity();
  }

private:
  /// Larger: a worker that becomes slow keeps its slots for longer; smaller: one hiccup takes
  /// slots away.
  static constexpr double memory_seconds = 0.5;
  static constexpr double fading_max = 0.3;

  double slots_ = 0, seconds_ = 0;
};

} // namespace dlrun::protocol
