/// Protocol rules that the simulator can break on purpose, to see itself find them. Compiled out of the
/// product: only the simulator's mutant build defines DLRUN_PLANTED_BUGS (tests/simulation/README.md).
#pragma once

#include <cstdint>

namespace dlrun::protocol {

enum class planted_bug : std::uint8_t {
  none,
  mix_versions,  ///< R6: a worker computes from the newest part of each shard
  ack_forever,   ///< R9: an acknowledgement outlives the PS incarnation that gave it
  max_version,   ///< R3: a worker believes the highest version ever heard from a shard, whatever the
                 ///< incarnation
  arrival_order, ///< I2: a shard sums gradients in the order in which they arrive
};

#ifdef DLRUN_PLANTED_BUGS
constexpr bool is_planted(planted_bug configured, planted_bug bug) { return configured == bug; }
#else
constexpr bool is_planted(planted_bug, planted_bug) { return false; }
#endif

} // namespace dlrun::protocol
