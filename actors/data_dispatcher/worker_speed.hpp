/// How fast a worker is, by what it says of its work (rule R34).
#pragma once

#include "actors/protocol/dispatch_messages.hpp"
#include "actors/protocol/speed_meter.hpp"
#include "actors/protocol/time.hpp"

#include <cstdint>

namespace dlrun::data_dispatcher {

/// Pure: measures the slots per second of one start of a worker from its statuses, which tell what
/// it has done since its start and what it is at. Silence counts as time without result, as far as
/// it is no longer than a worker may be silent (lease_rules::silent_after).
class worker_speed {
public:
  /// What it has done so far took longer than it will: it was new. Measures from here on.
  void begin(const protocol::worker_status& status);
  /// @param unheard since its last status
  void measure(const protocol::worker_status& status, protocol::duration unheard,
               protocol::duration silent_after);

  double slots_per_second() const { return meter_.slots_per_second(); }
  /// What it would be if all that it is at were done now; the longer it is unheard, the lower.
  double at_most(protocol::duration unheard, protocol::duration silent_after) const;
  /// By the newest status that was measured.
  std::uint64_t slots_computed() const { return slots_computed_; }

private:
  protocol::speed_meter meter_;
  std::uint64_t slots_computed_ = 0, compute_us_ = 0; ///< since its start, measured
  std::uint32_t computing_ = 0;                       ///< slots, by the newest status
  protocol::duration computing_for_{};                ///< so long, by then
};

} // namespace dlrun::data_dispatcher
