/// What a PS shard's core is told of the job.
#pragma once

#include "actors/protocol/durability.hpp"
#include "actors/protocol/planted_bug.hpp"
#include "actors/ps_shard/ps_shard_actions.hpp"

#include <functional>
#include <set>
#include <vector>

namespace dlrun::ps_shard {

struct ps_shard_core_config {
  ps_shard_id self;
  protocol::fence fence;
  std::uint32_t ps_shards = 1;
  std::uint64_t steps = 0; ///< N
  std::function<std::uint32_t(step_id)> slots_of;
  std::function<std::uint64_t(step_id, slot_id)> records_of; ///< training records of a slot, for the ledger
  std::uint32_t early_publish_bound = 1;                     ///< B of rule R7
  protocol::durability durability = protocol::durability::off;
  /// R17: versions that are snapshotted whoever asks, e.g. those to be evaluated. N always is.
  std::set<version_id> named_snapshots{};
  /// R17: versions that it goes beyond only when it is told to (on_go_on()). Empty: none.
  std::set<version_id> gates{};
  std::size_t snapshots_in_work_max = 2; ///< the shell's pool; a step that would need one more waits
  /// R12: makes the coupled quantity from the partials of all shards, in shard order. Pure; null
  /// when nothing couples.
  std::function<std::uint64_t(const std::vector<norm_partials>&)> combine_norms{};
  protocol::planted_bug bug = protocol::planted_bug::none;
};

} // namespace dlrun::ps_shard
