#include "actors/coordinator/crash_book.hpp"

#include <algorithm>

namespace dlrun::coordinator {

using protocol::parked_slot;
using protocol::slot_progress;

std::optional<parked_slot> crash_book::add(const protocol::role_name& who, incarnation start,
                                           const slot_progress& where) {
  const slot_key slot{where.at.step, where.at.slot};
  if (!deaths_[slot].insert({who, start}).second) return std::nullopt;
  if (where.at.is_whole()) {
    if (deaths_[slot].size() >= suspect_after || where.examined) suspect(slot, where.examined);
    return std::nullopt;
  }
  if (poisoned_.size() >= protocol::parked_by_death_max || !poisoned_.insert(where.at).second)
    return std::nullopt;
  return where.at;
}

void crash_book::suspect(const slot_key& slot, bool together) {
  const auto [at, is_new] = suspects_.try_emplace(slot, together);
  at->second = at->second || together;
  if (!is_new) return;
  in_order_.push_back(slot);
  if (in_order_.size() <= protocol::suspect_slots_max) return;
  suspects_.erase(in_order_.front());
  in_order_.erase(in_order_.begin());
}

std::vector<protocol::suspect_slot> crash_book::suspects() const {
  std::vector<protocol::suspect_slot> all;
  for (const auto& [slot, together] : suspects_) all.push_back({slot.first, slot.second, together});
  return all;
}

} // namespace dlrun::coordinator
