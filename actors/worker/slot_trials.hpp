/// What is tried before a slot is computed in which several workers have died (rule R18).
#pragma once

#include "actors/protocol/parking.hpp"
#include "actors/protocol/planted_bug.hpp"

#include <cstdint>
#include <vector>

namespace dlrun::worker {

/// One computation whose result nobody takes. Who dies at it has found a record to leave out.
struct slot_trial {
  std::vector<std::uint32_t> records; ///< places in the slot
  std::uint32_t blamed = 0;           ///< the record that is left out when it kills
};

/// Pure: the trials of a suspect slot. First each record alone: together as much arithmetic as the
/// slot, and one death for each record that kills. Then, where `suspect` says that records kill
/// together, more and more of them: when a death follows, the record that was added last is left
/// out. The whole of `records`, which follows, is no trial. `records`: those that are not left out
/// yet, ascending.
std::vector<slot_trial> trials_of(const protocol::suspect_slot& suspect,
                                  const std::vector<std::uint32_t>& records,
                                  protocol::planted_bug bug = protocol::planted_bug::none);

/// Where a worker is that computes all of `records` after those trials.
protocol::slot_progress progress_after(const protocol::suspect_slot& suspect,
                                       const std::vector<std::uint32_t>& records);

} // namespace dlrun::worker
