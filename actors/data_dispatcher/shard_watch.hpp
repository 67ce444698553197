/// What the PS shards have said of themselves, and what was new in it.
#pragma once

#include "actors/data_dispatcher/data_dispatcher_actions.hpp"
#include "actors/data_dispatcher/lost_gradients.hpp"

#include <map>
#include <optional>

namespace dlrun::data_dispatcher {

/// Pure: the newest status of each PS shard, whatever its timeline. Tells the coordinator, once
/// each, of a start that makes versions again and of a worker's first contribution.
class shard_watch {
public:
  explicit shard_watch(std::uint32_t ps_shards)
      : ps_shards_(ps_shards) {}

  /// False, and nothing happens, for a status of no shard of this job, of an older start, or one
  /// that was overtaken.
  bool on_status(const protocol::shard_status& status, data_dispatcher_actions& out);
  /// A start has joined. False if it is not newer than the one that is known.
  bool on_started(ps_shard_id shard, dlrun::incarnation incarnation);
  /// A start is over. False for an older one.
  bool on_lost(ps_shard_id shard, dlrun::incarnation incarnation);

  /// Newest status of each shard heard; of a lost one until its next start is heard.
  const shard_statuses& statuses() const { return statuses_; }
  bool has_heard_all() const { return statuses_.size() == ps_shards_; }
  /// Its start that was heard last is over, and the next one was not heard.
  bool is_gone(ps_shard_id shard) const;
  /// Whether all were heard, and are on this timeline.
  bool all_on(timeline_id timeline) const;
  /// Whether all were heard, each from a timeline with this revision of the specification or a
  /// newer one.
  bool all_have(std::uint64_t revision) const;
  /// Whether all are on one timeline, and have applied and committed `version`.
  bool all_committed(version_id version) const;

private:
  struct shard_start {
    dlrun::incarnation incarnation;
    std::optional<version_id> first_heard{}; ///< the version that it restored
    bool resumed = false;
  };

  template <class Condition>
  bool all(Condition condition) const;
  void report_resumed(const protocol::shard_status& status, data_dispatcher_actions& out);

  std::uint32_t ps_shards_;
  shard_statuses statuses_;
  std::map<ps_shard_id, shard_start> starts_; ///< newest
  std::map<worker_id, dlrun::incarnation> contributed_;
};

} // namespace dlrun::data_dispatcher
