/// Which versions of a PS shard are on every store that counts: its own and that of its keeper
/// (rules R21 to R23).
#pragma once

#include "actors/protocol/copy_messages.hpp"
#include "actors/protocol/durability.hpp"
#include "actors/protocol/planted_bug.hpp"
#include "actors/protocol/time.hpp"

#include <optional>
#include <set>
#include <vector>

namespace dlrun::ps_shard {

/// What its own store holds.
struct own_store {
  protocol::history history = protocol::first_history();
  protocol::version_set restorable{{{0}, {0}}};
  /// From `first` to `last` the log leads, step by step. Runs may touch where a record is missing
  /// and a snapshot bridges it.
  std::vector<protocol::version_range> logged{};
  std::vector<version_id> snapshots{}; ///< ascending
  version_id floor{};
};

/// What of the own store counts, now that the copy has it too.
struct released_versions {
  std::optional<version_id> committed{}; ///< the log up to it
  std::vector<version_id> snapshots{};   ///< ascending; the log up to them came before
};

/// Pure: stands between the own store and the core, which hears of a record or a snapshot only once
/// every store that counts has it. So all that follows from D and from what can be restored (R7,
/// R10, R11, R13, R14, R19) holds for both. A copy that is nearly there holds back what is
/// committed, so that it gets there while training goes on; it is counted from when it holds all
/// that the core has heard of, until the agent says that its keeper is over. Without a log (mode
/// `snapshots`) what is committed is the newest snapshot that the core has heard of.
class copy_book {
public:
  /// A copy holds back when it lacks nothing but the last steps, so many at most.
  static constexpr std::uint64_t lag_max = 8;
  /// Where more is made than can be copied: one that has been filled for so long holds back
  /// snapshots, so that what it is filled from is not dropped; one that has lacked more than the
  /// last steps for so long, and nothing else, holds back all.
  static constexpr auto behind_max = std::chrono::seconds(10);

  /// @param kept not `off`
  explicit copy_book(protocol::durability kept = protocol::durability::every_step,
                     protocol::planted_bug bug = protocol::planted_bug::none)
      : has_log_(kept == protocol::durability::every_step)
      , bug_(bug) {}

  /// The own store was opened, or went back: it leads to `version`, and the core hears of all that
  /// is there up to it.
  void restart(protocol::history history, version_id version);
  /// An earlier start of this PS shard counted that start of the keeper, which has run ever since.
  void begin_with(dlrun::incarnation keeper) { counted_ = holding_ = keeper; }

  /// The own log holds every step below `version`; the own snapshot of it is durable. One that was
  /// ordered on a timeline that was left is none of this (R16).
  released_versions on_logged(version_id version);
  released_versions on_snapshot(timeline_id of, version_id version);
  /// What the keeper says, newest word first. @param mine what the own store holds now
  released_versions on_standing(const protocol::copy_standing& standing, const own_store& mine,
                                protocol::time_point now);
  /// The agent says that this start of the keeper runs now, or none (0).
  released_versions on_keeper(dlrun::incarnation runs);
  /// One that does not count yet has held back for too long: not before it has got further again.
  released_versions let_go();

  /// That the own store is on.
  timeline_id timeline() const { return protocol::newest_timeline(history_); }
  /// 0: nobody.
  dlrun::incarnation counted() const { return counted_; }
  /// Everything of the own store up to what the core has heard of, which is to be committed again
  /// before a word of it goes out (after a start D is unknown). Of a copy that counts from its
  /// floor on: an earlier start may have told it of a floor that the own store has not heard of
  /// (R24).
  bool holds_all(const own_store& mine) const;
  /// The core waits for the log of the copy; for its snapshots.
  bool is_log_awaited() const { return holding_.value != 0 && logged_ > committed_; }
  bool is_snapshot_awaited() const { return holds_snapshots() && !snapshots_.empty(); }
  const std::optional<protocol::copy_standing>& newest_standing() const { return standing_; }
  /// Of the timeline that the own store is on.
  version_id end_of_copy() const;

private:
  bool is_copied(version_id snapshot) const;
  bool holds_snapshots() const { return holding_.value != 0 || is_filled_late_; }
  bool is_of_timeline(const own_store& mine) const;
  bool leads_to(version_id version, const own_store& mine) const;
  version_id wanted_from() const;
  bool has_told_snapshots(const own_store& mine) const;
  bool is_nearly_there(const own_store& mine, protocol::time_point now);
  released_versions release();

  bool has_log_;
  protocol::planted_bug bug_;
  protocol::history history_ = protocol::first_history();
  version_id logged_;
  version_id committed_;
  std::set<version_id> snapshots_;      ///< own ones that the core has not heard of
  dlrun::incarnation holding_{};        ///< start of the keeper; counted or about to be
  dlrun::incarnation counted_{};        ///< `holding_` or none
  protocol::time_point filled_since_{}; ///< by the newest start of the keeper
  bool is_filled_late_ = false;
  std::optional<protocol::time_point> behind_since_{}; ///< it lacks nothing but the last steps
  std::optional<version_id> let_go_at_{};              ///< its end then
  std::optional<protocol::copy_standing> standing_{};  ///< of the newest start of the keeper
};

} // namespace dlrun::ps_shard
