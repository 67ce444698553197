/// A number of an evaluation that something is decided by: early stopping, the best version.
#pragma once

#include "actors/protocol/messages.hpp"

#include <cmath>
#include <functional>

namespace dlrun::protocol {

struct watched_metric {
  std::function<double(const evaluated&)> value; ///< pure
  bool larger_is_better = false;

  /// Whether `value` is better than `than` by more than `by`. Every number is better than NaN, NaN never.
  bool is_better(double value, double than, double by = 0) const {
    if (std::isnan(value)) return false;
    if (std::isnan(than)) return true;
    return larger_is_better ? value > than + by : value < than - by;
  }
};

} // namespace dlrun::protocol
