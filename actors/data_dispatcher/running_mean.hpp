/// A mean in which old measurements fade.
#pragma once

namespace dlrun::data_dispatcher {

/// Weight of the newest measurement: after eight of them an old one counts a twentieth.
inline constexpr double newest_weight = 0.3;

/// `before` 0: there was none.
inline double running_mean(double before, double newest) {
  return before == 0 ? newest : before * (1 - newest_weight) + newest * newest_weight;
}

} // namespace dlrun::data_dispatcher
