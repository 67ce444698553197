/// Notices that training stands still, and whom it waits for.
#pragma once

#include "actors/data_dispatcher/lease_book.hpp"
#include "actors/data_dispatcher/shard_watch.hpp"
#include "actors/data_dispatcher/worker_watch.hpp"
#include "actors/protocol/stall_messages.hpp"

#include <functional>
#include <map>
#include <optional>
#include <utility>

namespace dlrun::data_dispatcher {

struct stall_rules {
  std::uint64_t steps = 0; ///< N: who stands there waits for nobody
  std::function<std::uint32_t(step_id)> slots_of;
  /// A stall begins after so long without a new version, and after several usual steps.
  protocol::duration patience = std::chrono::seconds(1);
  /// Who was not heard for so long is silent. Must be several times the period of statuses.
  protocol::duration silent_after = std::chrono::milliseconds(500);
};

/// Pure: finds the role that training waits for. It begins to look when all PS shards and a worker
/// were heard. It takes the PS shard that stands lowest, and blames the worker that has the lease
/// for the first slot which this shard lacks; if it lacks none, the worker that evaluates, or the
/// PS shard itself.
class stall_finder {
public:
  /// Whoever can be blamed.
  struct roles {
    const shard_watch& shards;
    const worker_watch& workers;
    const lease_book& leases;
    /// Who evaluates what training waits for; nothing while nobody is asked.
    std::optional<std::pair<worker_id, dlrun::incarnation>> evaluator;
  };

  explicit stall_finder(stall_rules rules)
      : rules_(std::move(rules)) {}

  void on_shard(const protocol::shard_status& status, protocol::time_point now);
  /// Nobody was heard for a reason of our own: everything counts from now.
  void excuse(protocol::time_point now);

  /// Periodic. @returns what is news: a stall, another reason for it, or its end.
  std::optional<protocol::stall> look(const roles& all, protocol::time_point now);

private:
  using standing = std::pair<timeline_id, version_id>; ///< of who stands lowest

  bool has_begun(const roles& all);
  protocol::duration patience(const shard_watch& shards) const;
  protocol::stall find(const roles& all, protocol::time_point now) const;
  static protocol::stall blame_shard(const protocol::shard_status& shard, const roles& all);
  protocol::stall blame_worker(const protocol::shard_status& lacking, slot_id slot, const roles& all,
                               protocol::time_point now) const;
  std::optional<slot_id> first_missing(const protocol::shard_status& shard) const;
  static protocol::stall blame_evaluator(const roles& all);
  std::optional<protocol::stall> end(protocol::time_point now);

  stall_rules rules_;
  std::map<ps_shard_id, protocol::time_point> shards_heard_;
  bool has_begun_ = false;
  std::optional<standing> stands_;
  protocol::time_point since_{};        ///< stands_
  std::optional<protocol::stall> told_; ///< until it is over
};

} // namespace dlrun::data_dispatcher
