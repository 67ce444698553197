/// Which slots kill their workers, and which of their records (rule R18).
#pragma once

#include "actors/protocol/parking.hpp"
#include "actors/protocol/roles.hpp"

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace dlrun::coordinator {

/// Pure: counts deaths of workers, by their own doing, against the slot that they computed. One
/// death is chance. When a second start has died in a slot, the slot becomes a suspect: the worker
/// that computes it tries its records first (worker/slot_trials.hpp), so that the next death names
/// a record. If all records were tried alone and the slot still kills, some records kill together.
class crash_book {
public:
  /// Starts of workers that die in a slot before its records are tried.
  static constexpr std::size_t suspect_after = 2;

  /// `who` died by its own doing at `where`. Told again, it counts once. @returns what is to be
  /// left out of the training from now on; nothing when it is not known yet, or when too much is
  /// left out already.
  std::optional<protocol::parked_slot> add(const protocol::role_name& who, dlrun::incarnation start,
                                           const protocol::slot_progress& where);

  /// The newest suspects, sorted.
  std::vector<protocol::suspect_slot> suspects() const;
  /// All that add() returned: for a dispatcher that starts anew.
  const std::set<protocol::parked_slot>& poisoned() const { return poisoned_; }

private:
  using slot_key = std::pair<step_id, slot_id>;
  using start_of_role = std::pair<protocol::role_name, dlrun::incarnation>;

  void suspect(const slot_key& slot, bool together);

  std::map<slot_key, std::set<start_of_role>> deaths_;
  std::map<slot_key, bool> suspects_; ///< whether records kill together
  std::vector<slot_key> in_order_;    ///< of suspicion, oldest first
  std::set<protocol::parked_slot> poisoned_;
};

} // namespace dlrun::coordinator
