/// How long a PS shard would take to come back.
#pragma once

#include "actors/protocol/time.hpp"

#include <algorithm>
#include <dlrun/ids.hpp>
#include <vector>

namespace dlrun::ps_shard {

/// Pure: estimates how long a PS shard takes to come back. It reads and verifies all of its log,
/// and makes the steps above its newest snapshot again. Measured: verifying a step takes about half
/// as long as applying it, and replaying it up to half as long again.
class replay_cost {
public:
  /// A step took this long to apply.
  void add(protocol::duration took) {
    apply_us_ += newest_weight * (static_cast<double>(took.count()) - apply_us_);
  }

  /// Microseconds until it stands at `applied` again, from these snapshots, in the order of
  /// versions.
  std::uint64_t estimate_us(version_id applied, const std::vector<version_id>& snapshots) const {
    const auto count = snapshots.size();
    const auto steps_above = [&](std::size_t from_newest) {
      const auto base = count < from_newest ? 0 : snapshots[count - from_newest].value;
      return static_cast<double>(applied.value - std::min(base, applied.value));
    };
    const auto replayed = steps_above(1);
    const auto verified = steps_above(2); // the log reaches down to the second newest (R13)
    return static_cast<std::uint64_t>(apply_us_ * (1.5 * replayed + 0.5 * verified));
  }

private:
  static constexpr double newest_weight = 0.1; ///< in the running mean

  double apply_us_ = 0; ///< running mean
};

} // namespace dlrun::ps_shard
