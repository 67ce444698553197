/// Samples a second, from steps that are looked at now and then.
#pragma once

#include "actors/protocol/time.hpp"

#include <cstdint>
#include <optional>

namespace dlrun::observability {

/// Smoothed over about a second. Time is an argument. Not thread-safe.
class sample_rate {
public:
  /// `records_per_step` turns steps into samples.
  explicit sample_rate(std::uint64_t records_per_step)
      : records_per_step_{records_per_step} {}

  /// `step` steps are done at `at`, which is not before that of the last call; fewer than then
  /// after a rewind.
  /// @returns samples a second; 0 while that is not known.
  double at_step(std::uint64_t step, protocol::time_point at);

private:
  std::uint64_t records_per_step_;
  std::optional<protocol::time_point> at_;
  std::uint64_t step_ = 0;
  double rate_ = 0;
};

} // namespace dlrun::observability
