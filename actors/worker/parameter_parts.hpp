/// Which versions of the PS shards' parameters a worker has in memory, and which are on the way.
#pragma once

#include "actors/protocol/time.hpp"
#include "actors/worker/worker_actions.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>

namespace dlrun::worker {

/// What the shell has found where a part is to be fetched from.
struct found_part {
  bool is_reachable = false;
  bool has_version = false;      ///< the one that is wanted
  bool shows_all = false;        ///< of both buffers; else of one, whatever it holds
  bool is_read_in_place = false; ///< nothing is copied
};
/// How the fetch has ended by that; nothing: the part is there, and is to be copied.
std::optional<fetch_outcome> outcome_of(const found_part& found);

/// Pure: knows which parts of which versions are in memory, and decides what to fetch. At most one
/// fetch a shard is under way. A failed fetch is repeated once the shard has moved on or some time
/// has passed.
class parameter_parts {
public:
  /// A fetch that failed may be asked for again after `retry_after`.
  explicit parameter_parts(protocol::duration retry_after)
      : retry_after_{retry_after} {}

  /// Whether to ask for it: it is not in memory, was not refused, and nothing is on the way.
  bool may_fetch(ps_shard_id shard, version_id version) const;
  void begin(const fetch_part& order) { fetching_.emplace(order.shard, order); }
  /// The fetch has ended, well or not. @returns false for one that was not asked for.
  bool end(const fetch_part& order);
  /// What has come of the fetch. The first that found another version is followed by another one at
  /// once: the version is in the shard's other buffer.
  /// @returns false when the shard has refused it.
  bool take(const fetch_part& order, fetch_outcome outcome, protocol::time_point now);
  /// The shard stands elsewhere: what it refused it may serve now.
  void forget_refusals(ps_shard_id shard) { parts_[shard].refused.clear(); }
  void on_tick(protocol::time_point now);

  bool holds(ps_shard_id shard, version_id version) const;
  bool holds_any(ps_shard_id shard) const;
  /// The first of so many shards whose part of the version is not held, if any.
  std::optional<ps_shard_id> first_lacking(version_id version, std::uint32_t ps_shards) const;
  /// Of all shards: what is not in [lowest, highest], or `version`.
  void drop_outside(version_id lowest, version_id highest);
  void drop(version_id version);
  /// All of a shard, or all there is. What is on the way stays on the way.
  void drop(ps_shard_id shard) { parts_.erase(shard); }
  void clear() { parts_.clear(); }

private:
  struct part {
    std::set<version_id> held; ///< of the open step's version and the next one
    std::set<version_id> refused;
    protocol::time_point refused_at{};
    bool was_elsewhere = false; ///< what the fetch before was for
  };

  protocol::duration retry_after_;
  std::map<ps_shard_id, part> parts_;
  std::map<ps_shard_id, fetch_part> fetching_;
};

} // namespace dlrun::worker
