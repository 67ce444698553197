/// How much longer than usual a copy may say nothing while it writes what it has in hand.
#pragma once

#include "actors/protocol/copy_messages.hpp"
#include "actors/protocol/time.hpp"

namespace dlrun::ps_shard {

/// A disk that writes fewer bytes a second is as good as none.
inline constexpr std::uint64_t disk_bytes_a_second_min = std::uint64_t{20} << 20;

/// What has come is written, and a snapshot synced and read back, before the copy says that it has
/// it, and a disk tells nothing meanwhile. One thread of the keeper writes both.
/// @param record_bytes, snapshot_bytes of what has come of the record and of the snapshot
inline protocol::duration time_to_keep(std::uint64_t record_bytes, std::uint64_t snapshot_bytes) {
  return std::chrono::milliseconds((record_bytes + snapshot_bytes) * 1000 / disk_bytes_a_second_min);
}

} // namespace dlrun::ps_shard
