/// Finds out whether a PS shard that lags can still get what it lacks (rule R14).
#pragma once

#include "actors/protocol/parking.hpp"
#include "actors/protocol/rewind_messages.hpp"
#include "actors/protocol/roles.hpp"
#include "actors/protocol/status_messages.hpp"
#include "actors/protocol/timeline.hpp"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace dlrun::data_dispatcher {

using shard_statuses = std::map<ps_shard_id, protocol::shard_status>;

/// Steps that a shard lacks and others are past.
struct stuck_steps {
  using lacking = std::pair<ps_shard_id, step_id>;
  std::set<lacking> gradients; ///< cannot be computed again: somebody does not serve the version any more
  std::set<lacking> norms;     ///< a shard that is past it cannot give its norm
  bool empty() const { return gradients.empty() && norms.empty(); }
};

/// All statuses are of one timeline. Looks at the first steps that a shard lacks; what workers keep
/// is far less.
stuck_steps find_stuck(const shard_statuses& shards, bool couples);

/// Pure: one search for lost gradients. It asks first all workers what they keep, then all shards
/// where they stand. Only a step that was stuck before the search and still is after it counts:
/// when the search began all its gradients existed, and a worker forgets only what the shard has
/// committed.
class gradient_search {
public:
  /// `workers`: newest start of each that is heard.
  gradient_search(std::uint64_t id, stuck_steps before, std::map<worker_id, dlrun::incarnation> workers,
                  std::uint32_t ps_shards);

  std::uint64_t id() const { return id_; }
  /// Who has not answered yet; workers and shards never at once.
  std::vector<protocol::role_name> waits_for() const;
  /// Workers that are not heard any more are not waited for.
  void keep_workers(const std::map<worker_id, dlrun::incarnation>& heard);
  /// Of another timeline it says that the worker keeps nothing.
  void on_kept(const protocol::kept& answer, timeline_id timeline);
  /// A shard's status of the current timeline.
  void on_shard(const protocol::shard_status& answer);
  bool complete() const { return workers_.empty() && shards_.empty(); }

  /// What is lost, for people; empty when nothing is. All statuses are newer than the round.
  std::optional<std::string> verdict(const shard_statuses& shards, bool couples,
                                     const std::vector<protocol::parked_slot>& parked,
                                     const std::function<std::uint32_t(step_id)>& slots_of) const;

private:
  std::optional<slot_id> uncovered_slot(const protocol::shard_status& shard, step_id step,
                                        const std::vector<protocol::parked_slot>& parked,
                                        std::uint32_t slots) const;

  std::uint64_t id_;
  stuck_steps before_;
  std::map<worker_id, dlrun::incarnation> workers_; ///< not answered yet
  std::set<ps_shard_id> shards_;                    ///< not answered yet
  std::vector<protocol::step_slots> kept_;
};

} // namespace dlrun::data_dispatcher
