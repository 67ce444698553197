#include "actors/protocol/timeline.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace dlrun::protocol {

// ---- history

history first_history() { return {timeline_entry{}}; }

bool is_valid(const history& all) {
  if (all.empty() || all.size() > history_entries_max) return false;
  if (all.front().timeline.value != 0 || all.front().branch.value != 0) return false;
  std::size_t parked = 0;
  for (const auto& entry : all) parked += entry.parked.size();
  const auto ascending = [](const auto& left, const auto& right) { return left.timeline >= right.timeline; };
  return parked <= parked_slots_max && std::adjacent_find(all.begin(), all.end(), ascending) == all.end();
}

std::optional<version_id> branched_since(const history& all, timeline_id since) {
  std::optional<version_id> lowest;
  for (const auto& entry : all)
    if (entry.timeline > since) lowest = std::min(lowest.value_or(entry.branch), entry.branch);
  return lowest;
}

std::vector<parked_slot> parked_slots(const history& all) {
  std::vector<parked_slot> slots;
  for (const auto& entry : all) slots.insert(slots.end(), entry.parked.begin(), entry.parked.end());
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  return slots;
}

std::uint64_t revision_at(const history& all, step_id step) {
  for (auto at = all.size() - 1; at > 0; --at)
    if (all[at].revision != all[at - 1].revision && all[at].branch <= version_before(step))
      return all[at].revision;
  return all.front().revision;
}

/// The oldest pair of neighbours that change no revision becomes one, which branches at the lower
/// of both.
history extended(history all, timeline_entry next) {
  all.push_back(std::move(next));
  const auto changes = [&](std::size_t at) { return all[at].revision != all[at - 1].revision; };
  for (std::size_t at = 1; all.size() > history_entries_max && at + 2 < all.size();) {
    if (changes(at) || changes(at + 1)) {
      ++at;
      continue;
    }
    auto& newer = all[at + 1];
    newer.branch = std::min(newer.branch, all[at].branch);
    newer.parked.insert(newer.parked.end(), all[at].parked.begin(), all[at].parked.end());
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return all;
}

} // namespace dlrun::protocol
