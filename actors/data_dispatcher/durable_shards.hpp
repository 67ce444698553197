/// What the PS shards have on their disks, and what all of them have.
#pragma once

#include "actors/data_dispatcher/lost_gradients.hpp"
#include "actors/protocol/planted_bug.hpp"
#include "actors/protocol/status_messages.hpp"
#include "actors/protocol/timeline.hpp"

#include <map>
#include <set>
#include <vector>

namespace dlrun::data_dispatcher {

/// Pure: the newest status of each PS shard that is up.
class durable_shards {
public:
  durable_shards(std::uint32_t ps_shards, protocol::planted_bug bug)
      : ps_shards_(ps_shards)
      , bug_(bug) {}

  /// A newer status than those before: the caller sees to it.
  void note(const protocol::shard_status& status);
  /// What that shard said counts no more.
  void forget(ps_shard_id shard) { statuses_.erase(shard); }

  const shard_statuses& statuses() const { return statuses_; }
  bool all_reported() const { return statuses_.size() == ps_shards_; }
  /// Whether all have reported, and nobody stands on another timeline.
  bool all_on(timeline_id timeline) const;
  /// Versions that all can go back to (R14): what a shard made on its timeline is good up to the
  /// lowest branch of `history` since. Never empty: version 0 is one. All have reported.
  protocol::version_set restorable(const protocol::history& history) const;
  /// Versions that all have a snapshot of, with version 0, which needs no storage. Ascending.
  std::vector<version_id> snapshots() const;

private:
  std::uint32_t ps_shards_;
  protocol::planted_bug bug_;
  shard_statuses statuses_;
  std::map<ps_shard_id, std::set<version_id>> ever_reported_; ///< only for planted_bug::untagged_status
};

} // namespace dlrun::data_dispatcher
