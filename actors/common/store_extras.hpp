/// What the store of a PS shard keeps beside numbers: with each snapshot, and with each step of the
/// log.
#pragma once

#include "actors/protocol/status_messages.hpp"
#include "engine/block_updates.hpp"

#include <dlrun/error.hpp>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dlrun::common {

/// What goes into a snapshot beside the numbers.
struct snapshot_extra {
  engine::shard_range range;
  std::size_t floats = 0; ///< as block_updates::image_floats()
  std::optional<protocol::training_metrics> metrics;
  protocol::applied_ledger ledger;
};
std::string encode(const snapshot_extra& extra);
/// @returns what came with a snapshot of this range of this model; bad_usage for a whole one of
/// another version or job, which is not ours to drop; storage_damaged.
result<snapshot_extra> decode_snapshot_extra(std::span<const std::byte> bytes,
                                             const engine::shard_range& range, std::size_t image_floats,
                                             std::size_t metric_sums);

/// What goes beside a version in memory that outlives its PS shard (R36).
struct retained_extra {
  snapshot_extra snapshot;
  /// Own partials of the newest steps, as in loaded_standing; empty when nothing couples.
  std::map<step_id, std::vector<std::uint64_t>> partials;
};
std::string encode(const retained_extra& extra);
/// As decode_snapshot_extra().
result<retained_extra> decode_retained_extra(std::string_view bytes, const engine::shard_range& range,
                                             std::size_t image_floats, std::size_t metric_sums);

/// What the log keeps of a step beside its gradient.
struct step_extra {
  std::uint64_t revision = 0;
  std::uint64_t coupled = 0;
  std::vector<std::uint64_t> partials;
  protocol::applied_ledger ledger;
};
std::string encode(const step_extra& extra);
/// @returns storage_damaged.
result<step_extra> decode_step_extra(std::string_view bytes);

} // namespace dlrun::common
