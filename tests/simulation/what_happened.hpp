/// What the oracle must know of a run so far.
#pragma once

#include "actors/protocol/local_messages.hpp"
#include "actors/protocol/membership_messages.hpp"
#include "actors/ps_shard/ps_shard_actions.hpp"

#include <functional>
#include <map>
#include <set>
#include <string>

namespace dlrun::simulation {

struct what_happened {
  bool ps_shard_lost = false;
  bool worker_lost = false; ///< or silent for so long that it may count as lost
  bool lossy_power_cut = false;
  bool disk_lost = false;
  bool memory_lost = false; ///< of an agent that is gone, or of a start that was replaced before its end
  bool memory_left = false; ///< a PS shard did not begin with what memory had (R36)
  std::set<ps_shard_id> damaged_after_end; ///< whose newest snapshot was whole when the job was over
  bool journal_lost = false;               ///< or older data is in its place
  /// Stores in whose place an older copy was put, while the journal knew of a newer start.
  struct older_copy {
    incarnation opener;   ///< who had opened it last
    incarnation replaced; ///< the same of what it took the place of
  };
  std::map<ps_shard_id, older_copy> put_back;
  bool went_back_on_purpose = false;
  int rewinds = 0;
  int rewinds_for_lost_gradients = 0;
  std::uint64_t steps_redone = 0;
  std::uint64_t floor = 0;  ///< highest that was ordered, and not undercut since
  std::uint64_t widest = 0; ///< most versions that two shards of a timeline were apart

  /// Told of every floor that is ordered; a wish to go back below it comes at the worst moment.
  std::function<void(version_id floor)> on_floor;

  /// `newest`: the timeline in the journal.
  void note_floor(const protocol::floor& order, timeline_id newest);
  /// R13: whoever goes back without being asked to finds a version that is not below the floor,
  /// unless disks `may_be_damaged`. @throws violation.
  void note_rewind(const protocol::timeline_started& start, bool may_be_damaged);
  /// R24: a PS shard has joined, with a store that has the identity that it had last
  /// (`is_current`); the coordinator tells that it `is_short`. It tells so of every older copy of
  /// the current store, and of no store that has lost nothing. @throws violation.
  void note_opened(const protocol::join& join, bool is_current, bool is_short, bool may_be_damaged);
  /// R15: nobody goes to a timeline that is not in the journal, whose newest is `newest`. @throws
  /// violation.
  void check_begun(const ps_shard::perform_rewind& order, timeline_id newest, const std::string& by) const;
};

} // namespace dlrun::simulation
