/// A number of an evaluation that something is decided by: early stopping, the best version.
#pragma once

#include "actors/protocol/dispatch_messages.hpp"

#include <cmath>
#include <functional>
#include <optional>

namespace dlrun::protocol {

struct watched_metric {
  std::function<double(const evaluated&)> value; ///< pure
  bool larger_is_better = false;

  /// Whether `value` is better than `than` by more than `by`. NaN and infinity are never better
  /// than anything, not even than nothing.
  bool is_better(double value, std::optional<double> than, double by = 0) const {
    if (!std::isfinite(value)) return false;
    if (!than) return true;
    return larger_is_better ? value > *than + by : value < *than - by;
  }
};

} // namespace dlrun::protocol
