/// Decides on which version everybody stands: names snapshots, sets the floor, sees when gradients
/// are lost, probes, goes back, parks slots, and says when training is finished (rules R11 to R20,
/// the dispatcher's half).
#pragma once

#include "actors/data_dispatcher/data_dispatcher_actions.hpp"
#include "actors/data_dispatcher/evaluation_book.hpp"
#include "actors/data_dispatcher/lost_gradients.hpp"
#include "actors/data_dispatcher/repeats.hpp"
#include "actors/data_dispatcher/snapshot_schedule.hpp"
#include "actors/protocol/durability.hpp"
#include "actors/protocol/local_messages.hpp"
#include "actors/protocol/messages.hpp"
#include "actors/protocol/planted_bug.hpp"
#include "actors/protocol/time.hpp"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace dlrun::data_dispatcher {

/// How steps are cut into slots.
struct slot_sizes {
  std::function<std::uint32_t(step_id)> slots_of;
  std::function<std::uint64_t(step_id, slot_id)> records_of; ///< of a slot, with what is left out
  std::uint64_t records_min = 1; ///< that the model can train as one slot; where fewer are left, none is
};

struct timeline_keeper_config {
  dlrun::incarnation self;
  std::uint32_t ps_shards = 1;
  std::uint64_t steps = 0; ///< N
  slot_sizes sizes;
  protocol::durability durability = protocol::durability::every_step; ///< not off
  bool couples = false;                                               ///< shards exchange norms (R12)
  /// What is evaluated (R17); the shards snapshot those versions on their own.
  evaluation_rules evaluations{};
  /// What a crash may cost in replay or recomputation; snapshots are named to keep it.
  protocol::duration max_recovery = std::chrono::milliseconds(500);
  /// What is not obeyed yet is said again after this long.
  protocol::duration repeat_after = std::chrono::milliseconds(200);
  protocol::planted_bug bug = protocol::planted_bug::none;
};

/// Pure: same calls, same answers. Everything but the course follows from what shards and workers
/// report.
class timeline_keeper {
public:
  timeline_keeper(timeline_keeper_config config, journaled_course course);

  /// A newer status than those before: the caller sees to it.
  void on_shard_status(const protocol::shard_status& status, protocol::time_point now,
                       data_dispatcher_actions& out);
  /// What that shard said counts no more. All shards must have reported before anything is decided
  /// (R14a).
  void on_shard_lost(ps_shard_id shard);
  /// `heard`: the workers that a probe waits for. `all_known` false: others may be there that have
  /// not joined yet (this dispatcher was just started), and nothing is called lost.
  void set_workers(std::map<worker_id, dlrun::incarnation> heard, bool all_known);
  void on_kept(const protocol::kept& answer, protocol::time_point now, data_dispatcher_actions& out);
  void on_evaluated(const protocol::evaluated& result, data_dispatcher_actions& out);
  void on_journaled(std::uint64_t id, protocol::time_point now, data_dispatcher_actions& out);
  /// Every `repeat_after` or sooner.
  void on_tick(protocol::time_point now, data_dispatcher_actions& out);

  /// R18: train without this slot, or this record of it. Goes back to before its step.
  void park(const protocol::parked_slot& slot, protocol::time_point now, data_dispatcher_actions& out);
  /// R16a: the operator goes back on purpose, each time with a new revision: by that a repetition
  /// is told.
  void go_back(const protocol::go_back& wanted, protocol::time_point now, data_dispatcher_actions& out);

  timeline_id timeline() const { return newest_timeline(course_.history); }
  /// R17: an evaluation whose snapshots are there and whose result is not.
  std::optional<protocol::evaluate> evaluation_due() const;
  /// The last version: N, or, when an evaluation has stopped the training early, that one.
  version_id last_version() const { return book_.last(); }
  /// Training stands still at `version` because it is over or an evaluation is awaited.
  bool holds_at(version_id version) const { return version >= book_.limit(); }
  /// R19: every shard has the snapshot of the last version on this timeline, all evaluations are
  /// journaled.
  bool finished() const;
  /// The job ends on `timeline`, if it is finished there still. From then on nothing is decided any
  /// more, so that nobody goes back behind the end that is being journaled. False when it is not
  /// finished.
  bool close(timeline_id timeline);

private:
  struct writing {
    std::uint64_t id = 0;
    journaled_course course;
    std::optional<timeline_started> start; ///< the course goes on on a new timeline
  };
  struct going_back {
    protocol::go_back wanted;
    std::optional<version_id> version; ///< once it is chosen: to be pinned
  };

  void decide(protocol::time_point now, data_dispatcher_actions& out);
  bool everybody_reported() const { return shards_.size() == config_.ps_shards; }
  bool everybody_is_here() const;
  protocol::version_set restorable_everywhere() const;
  std::vector<version_id> snapshots_everywhere() const;

  void recover_course(data_dispatcher_actions& out);
  bool bring_up(protocol::time_point now, data_dispatcher_actions& out);
  bool journal_parked(data_dispatcher_actions& out);
  bool park_what_waits(data_dispatcher_actions& out);
  bool go_back_when_pinned(protocol::time_point now, data_dispatcher_actions& out);
  void look_for_lost_gradients(protocol::time_point now, data_dispatcher_actions& out);
  void end_search(data_dispatcher_actions& out);
  void name_snapshot(protocol::time_point now, data_dispatcher_actions& out);
  void give_up_evaluations(data_dispatcher_actions& out);
  void set_floor(protocol::time_point now, data_dispatcher_actions& out);
  void let_go_on(protocol::time_point now, data_dispatcher_actions& out);
  std::optional<version_id> floor_now() const;

  void begin_timeline(const journaled_course& from, protocol::timeline_entry entry, std::string reason,
                      data_dispatcher_actions& out);
  protocol::timeline_entry next_entry(version_id branch) const;
  void write(journaled_course course, std::optional<timeline_started> start, data_dispatcher_actions& out);
  void send_rewind_to(ps_shard_id shard, protocol::time_point now, data_dispatcher_actions& out);

  timeline_keeper_config config_;
  journaled_course course_; ///< as the journal has it
  std::optional<writing> writing_;
  std::uint64_t next_write_ = 1;
  shard_statuses shards_;
  std::map<worker_id, dlrun::incarnation> workers_;
  bool workers_are_known_ = false;
  std::optional<gradient_search> search_;
  std::uint64_t next_search_ = 1;
  std::set<protocol::parked_slot> to_park_;
  std::optional<going_back> going_back_;
  evaluation_book book_;
  snapshot_schedule schedule_;
  repeats repeats_;
  bool closed_;
  std::map<ps_shard_id, std::set<version_id>> ever_reported_; ///< only for planted_bug::untagged_status
};

} // namespace dlrun::data_dispatcher
