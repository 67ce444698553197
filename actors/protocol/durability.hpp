/// What PS shards keep on disk (`durability.log` of the job specification).
#pragma once

#include <cstdint>

namespace dlrun::protocol {

/// What a PS shard writes down, and so which version it has *committed* (D).
enum class durability : std::uint8_t {
  off,       ///< nothing: a version is committed when it is applied, a lost shard ends the job
  snapshots, ///< snapshots only: the newest durable one is committed, what lies between is computed again
  every_step ///< each step's summed gradient, and snapshots: the end of the log is committed
};

} // namespace dlrun::protocol
