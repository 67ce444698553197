/// Which versions of a PS shard are on disk, which are to be snapshotted, and what may be dropped
/// (rules R11, R13, R16a, R17).
#pragma once

#include "actors/protocol/timeline.hpp"
#include "actors/ps_shard/ps_shard_actions.hpp"

#include <optional>
#include <set>
#include <vector>

namespace dlrun::ps_shard {

/// Pure: keeps the books of what the shell writes and drops.
class version_book {
public:
  /// `named`: versions that are snapshotted whoever asks.
  explicit version_book(std::set<version_id> named);

  void restart(protocol::version_set restorable, const std::vector<version_id>& snapshots);

  const protocol::version_set& restorable() const { return restorable_; }
  bool can_restore(version_id version) const { return contains(restorable_, version); }
  bool has_snapshot(version_id version) const { return snapshots_.contains(version); }
  std::vector<version_id> snapshots() const { return {snapshots_.begin(), snapshots_.end()}; }
  /// Asked for and not passed yet, or in work.
  std::vector<version_id> planned(version_id applied) const;
  std::size_t in_work() const { return in_work_.size(); }
  bool is_in_work(version_id version) const { return in_work_.contains(version); }
  /// Those up to that version; nothing: none.
  bool has_in_work(std::optional<version_id> up_to) const {
    return up_to && !in_work_.empty() && *in_work_.begin() <= *up_to;
  }
  std::optional<version_id> newest_in_work() const {
    return in_work_.empty() ? std::nullopt : std::optional(*in_work_.rbegin());
  }

  /// A dispatcher asks for a snapshot of a version that is not passed yet. Of many the lowest
  /// count.
  void ask_for(version_id version);
  bool is_wanted(version_id version) const;
  void begin(version_id version);
  void failed(version_id version);
  /// Named versions up to `applied` that have no snapshot, but can have one: from the log, or, of
  /// version `at_hand`, from memory.
  std::vector<version_id> missing(version_id applied, std::optional<version_id> at_hand) const;

  void committed(version_id before, version_id version);
  void snapshot_durable(version_id version);

  struct pin {
    dlrun::incarnation dispatcher;
    version_id version;
  };
  const std::optional<pin>& pinned() const { return pin_; }
  void set_pin(dlrun::incarnation dispatcher, version_id version);
  /// What may go when a dispatcher says that nobody goes back below `floor`: what is below the
  /// newest own snapshot that is not above floor or pin, which is returned, but for the snapshot of
  /// `kept`. Empty when there is nothing to drop.
  std::optional<version_id> droppable(version_id floor, dlrun::incarnation dispatcher,
                                      std::optional<version_id> kept = std::nullopt);
  void dropped_below(version_id version, std::optional<version_id> kept = std::nullopt);

private:
  std::set<version_id> named_;
  protocol::version_set restorable_;
  std::set<version_id> snapshots_; ///< durable, without version 0
  std::set<version_id> in_work_;
  std::set<version_id> asked_;
  std::optional<pin> pin_;
};

} // namespace dlrun::ps_shard
