/// What share of a worker's steps its processor takes for layers that its device does not compute.
#pragma once

#include "actors/protocol/time.hpp"

#include <chrono>
#include <cstdint>
#include <dlrun/ids.hpp>
#include <optional>

namespace dlrun::worker {

/// Pure: measures some steps, waiting included, and says it once.
class host_share {
public:
  /// Steps that are measured. The one before them is not, since libraries are loaded in it.
  static constexpr std::uint32_t steps = 8;

  /// A gradient of this step begins, when those layers have taken `so_far` since the start; a step
  /// may have several gradients. @returns the share, from 0 to 1, when the last step is over.
  std::optional<double> on_begin(step_id step, protocol::time_point now, std::chrono::nanoseconds so_far);

private:
  std::optional<step_id> step_;
  std::uint32_t begun_ = 0; ///< steps
  protocol::time_point since_{};
  std::chrono::nanoseconds taken_before_{};
};

} // namespace dlrun::worker
