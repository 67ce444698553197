/// Which versions of a PS shard are on every store that counts: its own and that of its keeper
/// (rules R21 to R23).
#pragma once

#include "actors/protocol/copy_messages.hpp"
#include "actors/protocol/planted_bug.hpp"

#include <optional>
#include <set>
#include <vector>

namespace dlrun::ps_shard {

struct own_snapshot {
  version_id version{};
  timeline_id timeline{}; ///< that it was taken on

  bool operator==(const own_snapshot&) const = default;
};

/// What its own store holds.
struct own_store {
  protocol::history history = protocol::first_history();
  protocol::version_set restorable{{{0}, {0}}};
  /// From `first` to `last` the log leads, step by step. Runs may touch where a record is missing
  /// and a snapshot bridges it.
  std::vector<protocol::version_range> logged{};
  std::vector<own_snapshot> snapshots{}; ///< by version, ascending
  version_id floor{};
};

/// What of the own store counts, now that the copy has it too.
struct released_versions {
  std::optional<version_id> committed{}; ///< the log up to it
  std::vector<version_id> snapshots{};   ///< ascending; the log up to them came before
};

/// Pure: stands between the own store and the core, which hears of a record or a snapshot only once
/// every store that counts has it. So all that follows from D and from what can be restored (R7,
/// R10, R11, R13, R14, R19) holds for both. A copy is counted from when it holds all that the core
/// has heard of, until the agent says that its keeper is over.
class copy_book {
public:
  explicit copy_book(protocol::planted_bug bug = protocol::planted_bug::none)
      : bug_(bug) {}

  /// The own store was opened, or went back: it stands at `version`, and the core hears of all that
  /// is there up to it. @param snapshots of it
  void restart(protocol::history history, version_id version);
  /// An earlier start of this PS shard counted that start of the keeper, which has run ever since.
  void begin_with(dlrun::incarnation keeper) { counted_ = keeper; }

  /// The own log holds every step below `version`; the own snapshot of it is durable.
  released_versions on_logged(version_id version);
  released_versions on_snapshot(version_id version);
  /// What the keeper says, newest word first. @param mine what the own store holds now
  released_versions on_standing(const protocol::copy_standing& standing, const own_store& mine);
  /// The agent says that this start of the keeper runs now, or none (0).
  released_versions on_keeper(dlrun::incarnation runs);

  /// 0: nobody.
  dlrun::incarnation counted() const { return counted_; }
  /// Everything of the own store up to what the core has heard of, which is to be committed again
  /// before a word of it goes out (after a start D is unknown).
  bool holds_all(const own_store& mine) const;
  /// The core waits for the copy.
  bool is_awaited() const { return counted_.value != 0 && (logged_ > committed_ || !snapshots_.empty()); }
  const std::optional<protocol::copy_standing>& newest_standing() const { return standing_; }

private:
  version_id end_of_copy() const;
  released_versions release();

  protocol::planted_bug bug_;
  protocol::history history_ = protocol::first_history();
  version_id logged_;
  version_id committed_;
  std::set<version_id> snapshots_; ///< own ones that the core has not heard of
  dlrun::incarnation counted_{};
  std::optional<protocol::copy_standing> standing_{}; ///< of the newest start of the keeper
};

} // namespace dlrun::ps_shard
