/// Which version a PS shard begins with (rule R36).
#pragma once

#include "actors/protocol/planted_bug.hpp"
#include "actors/protocol/timeline.hpp"
#include "actors/ps_shard/ps_shard_actions.hpp"

#include <algorithm>
#include <set>

namespace dlrun::ps_shard {

/// Whether it begins with `version` of `timeline`, which memory retained, rather than with that of
/// `stored`, the newest that its store leads to. Also when they are the same: memory has the
/// version before, too, and norms of steps. Not when all have gone back meanwhile; nor when a
/// version on the way, of those that are snapshotted whoever asks (R17), has no snapshot yet, since
/// no log leads to it: it can only be made again.
inline bool begins_with_retained(timeline_id timeline, version_id version, const loaded_standing& stored,
                                 const std::set<version_id>& named,
                                 protocol::planted_bug bug = protocol::planted_bug::none) {
  const bool is_current = timeline == protocol::newest_timeline(stored.history) ||
                          protocol::is_planted(bug, protocol::planted_bug::stale_memory);
  const auto next = named.upper_bound(stored.version);
  const bool is_passed =
      next != named.end() && *next < version && !protocol::is_planted(bug, protocol::planted_bug::pass_named);
  return is_current && version >= stored.version && !is_passed &&
         !protocol::is_planted(bug, protocol::planted_bug::never_retained);
}

} // namespace dlrun::ps_shard
