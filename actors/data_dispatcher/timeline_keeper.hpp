/// Decides on which timeline everybody stands: brings PS shards there, goes back when gradients are
/// lost, parks slots, and says when training is finished (rules R14 to R16a, R18 to R20, the
/// dispatcher's half).
#pragma once

#include "actors/data_dispatcher/course_book.hpp"
#include "actors/data_dispatcher/loss_watch.hpp"
#include "actors/data_dispatcher/version_plan.hpp"
#include "actors/protocol/durability.hpp"
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

/// What `dlrun resume` was asked to change (R16a).
struct wanted_change {
  version_id from;            ///< from here on, or the greatest version below that can be restored
  std::uint64_t revision = 0; ///< of the specification; each change has a larger one
  std::vector<protocol::parked_slot> skip{};
};

struct timeline_keeper_config {
  dlrun::incarnation self;
  std::uint32_t ps_shards = 1;
  std::uint64_t steps = 0; ///< N
  slot_sizes sizes;
  protocol::durability durability = protocol::durability::every_step; ///< not off
  bool couples = false;                                               ///< shards exchange norms (R12)
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
  /// (R14).
  void on_shard_lost(ps_shard_id shard) { shards_.forget(shard); }
  /// As loss_watch has it.
  void set_workers(std::map<worker_id, dlrun::incarnation> heard, bool all_known) {
    losses_.set_workers(std::move(heard), all_known);
  }
  void on_kept(const protocol::kept& answer, protocol::time_point now, data_dispatcher_actions& out);
  void on_evaluated(const protocol::evaluated& result, data_dispatcher_actions& out);
  void on_journaled(std::uint64_t id, protocol::time_point now, data_dispatcher_actions& out);
  /// Every `repeat_after` or sooner.
  void on_tick(protocol::time_point now, data_dispatcher_actions& out) { decide(now, out); }

  /// R18: train without this slot, or this record of it. Goes back to before its step.
  void park(const protocol::parked_slot& slot, protocol::time_point now, data_dispatcher_actions& out);
  /// R16a: the operator goes back on purpose. By the revision a repetition is told. False when the
  /// job is over, and nobody goes back any more.
  bool go_back(const wanted_change& wanted, protocol::time_point now, data_dispatcher_actions& out);

  timeline_id timeline() const { return course_.timeline(); }
  const version_plan& versions() const { return versions_; }
  /// R17: an evaluation whose snapshots are there and whose result is not.
  std::optional<protocol::evaluate> evaluation_due() const;
  /// R19: every shard has the snapshot of the last version on this timeline, all evaluations are
  /// journaled.
  bool finished() const;
  /// The job ends on `timeline`, if it is finished there still. From then on nothing is decided any
  /// more, so that nobody goes back behind the end that is being journaled. False when it is not
  /// finished.
  bool close(timeline_id timeline);

private:
  struct going_back {
    wanted_change wanted;
    std::optional<version_id> version; ///< once it is chosen: to be pinned
  };

  void decide(protocol::time_point now, data_dispatcher_actions& out);
  void recover_course(data_dispatcher_actions& out);
  bool bring_up(protocol::time_point now, data_dispatcher_actions& out);
  void send_rewind_to(ps_shard_id shard, protocol::time_point now, data_dispatcher_actions& out);
  bool journal_parked(data_dispatcher_actions& out);
  bool park_what_waits(data_dispatcher_actions& out);
  bool go_back_when_pinned(protocol::time_point now, data_dispatcher_actions& out);
  /// Everybody goes back to what all can restore.
  void go_back_because(std::string reason, data_dispatcher_actions& out);
  void begin_timeline(journaled_course course, protocol::timeline_entry entry, std::string reason,
                      data_dispatcher_actions& out);

  timeline_keeper_config config_;
  course_book course_;
  durable_shards shards_;
  version_plan versions_;
  loss_watch losses_;
  std::set<protocol::parked_slot> to_park_;
  std::optional<going_back> going_back_;
  repeats repeats_;
  bool closed_;
};

} // namespace dlrun::data_dispatcher
