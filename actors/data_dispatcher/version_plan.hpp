/// Which versions have a snapshot, are kept, are evaluated, and which is the last (rules R13, R17,
/// R19).
#pragma once

#include "actors/data_dispatcher/data_dispatcher_actions.hpp"
#include "actors/data_dispatcher/durable_shards.hpp"
#include "actors/data_dispatcher/evaluation_book.hpp"
#include "actors/data_dispatcher/repeats.hpp"
#include "actors/data_dispatcher/snapshot_schedule.hpp"

#include <optional>

namespace dlrun::data_dispatcher {

struct version_plan_config {
  dlrun::incarnation self;
  /// What is evaluated (R17); the shards snapshot those versions on their own.
  evaluation_rules evaluations{};
  snapshot_schedule_config snapshots{};
  protocol::duration repeat_after = std::chrono::milliseconds(200);
  protocol::planted_bug bug = protocol::planted_bug::none;
};

/// Pure: orders snapshots, sets the floor and says how far shards may go, again until their
/// statuses show it.
class version_plan {
public:
  explicit version_plan(version_plan_config config);

  /// The evaluations that are journaled, and not void.
  void set_results(const std::vector<protocol::evaluated>& results) { book_.set_results(results); }
  /// A new timeline: what was named is void, what was given up may be there again.
  void restart();
  /// All shards have reported, from `timeline`.
  void follow(const durable_shards& shards, timeline_id timeline, protocol::time_point now,
              data_dispatcher_actions& out);

  /// The last version: N, or, when an evaluation has stopped the training early, that one.
  version_id last() const { return book_.last(); }
  /// Whether the result of this version is awaited.
  bool awaits(version_id version) const;
  /// The next version to evaluate: its snapshots are there, its result is not.
  std::optional<version_id> to_evaluate(const durable_shards& shards) const;
  /// Every shard has the snapshot of the last version, and all evaluations are journaled.
  bool is_complete(const durable_shards& shards) const;

private:
  void give_up_evaluations(const shard_statuses& shards, data_dispatcher_actions& out);
  void name_snapshot(const durable_shards& shards, timeline_id timeline, protocol::time_point now,
                     data_dispatcher_actions& out);
  std::optional<version_id> floor_of(const std::vector<version_id>& snapshots) const;
  void set_floor(const durable_shards& shards, timeline_id timeline, protocol::time_point now,
                 data_dispatcher_actions& out);
  void let_go_on(const shard_statuses& shards, timeline_id timeline, protocol::time_point now,
                 data_dispatcher_actions& out);

  dlrun::incarnation self_;
  protocol::planted_bug bug_;
  evaluation_book book_;
  snapshot_schedule schedule_;
  repeats repeats_;
};

} // namespace dlrun::data_dispatcher
