/// Timelines: the history of a training that went back (rules R2, R14 to R18), and the sets of
/// versions, steps and slots that are spoken of when it does.
#pragma once

#include "actors/protocol/parking.hpp"
#include "actors/protocol/reduction_tree.hpp"
#include "base/version_set.hpp"

#include <cstdint>
#include <dlrun/ids.hpp>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::protocol {

/// One timeline: it goes on from version `branch` of the one before it in the history.
struct timeline_entry {
  timeline_id timeline;
  version_id branch;
  std::uint64_t revision = 0; ///< number of the specification as used: a larger one than before holds from
                              ///< `branch` on (revision_at)
  std::vector<parked_slot> parked{}; ///< beside those of the entries before: nothing is taken back

  bool operator==(const timeline_entry&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, timeline_entry& x) {
    return f(x.timeline, x.branch, x.revision, x.parked);
  }
};

/// Entries ascending by timeline. The first is timeline 0, branch 0; never empty in a valid
/// history.
using history = std::vector<timeline_entry>;

history first_history();
/// What comes from another process or a disk: ascending, with the first entry, within the bounds
/// below.
bool is_valid(const history& all);
inline timeline_id newest_timeline(const history& all) { return all.back().timeline; }
/// The lowest version at which a timeline newer than `since` branched; empty when there is none.
/// What was made on `since` is good up to there.
std::optional<version_id> branched_since(const history& all, timeline_id since);
/// The revision that `step` is trained with on the newest timeline: an operator's change holds from
/// the branch of its timeline on, and a rewind to before it takes nothing of it back.
std::uint64_t revision_at(const history& all, step_id step);
/// All parked slots of the newest timeline, sorted.
std::vector<parked_slot> parked_slots(const history& all);
/// Bounds, so that a status stays far below 64 KiB. Older entries that change no revision are
/// merged, which costs a shard that stands on one of them, if any, to go back a little further than
/// it had to.
inline constexpr std::size_t history_entries_max = 128;
inline constexpr std::size_t parked_slots_max = 512;
/// `all` with one more entry, merged to the bound.
history extended(history all, timeline_entry next);

// Sets of versions are spoken of in messages and in what is stored.
using base::common;
using base::contains;
using base::from;
using base::greatest_up_to;
using base::insert;
using base::to_string;
using base::up_to;
using base::version_range;
using base::version_set;

/// A run of slots of one step, e.g. those of which gradients are held.
struct step_slots {
  step_id step;
  slot_range slots;

  auto operator<=>(const step_slots&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, step_slots& x) {
    return f(x.step, x.slots);
  }
};

} // namespace dlrun::protocol
