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

// ---- sets of versions

bool contains(const version_set& set, version_id version) {
  return std::any_of(set.begin(), set.end(),
                     [&](const auto& range) { return range.first <= version && version <= range.last; });
}

void insert(version_set& set, base::version_range added) {
  const auto begins_after = [](const base::version_range& range, version_id version) {
    return range.last.value + 1 < version.value;
  };
  auto at = std::lower_bound(set.begin(), set.end(), added.first, begins_after);
  while (at != set.end() && at->first.value <= added.last.value + 1) {
    added.first = std::min(added.first, at->first);
    added.last = std::max(added.last, at->last);
    at = set.erase(at);
  }
  set.insert(at, added);
}

version_set common(const version_set& left, const version_set& right) {
  version_set both;
  auto a = left.begin();
  auto b = right.begin();
  while (a != left.end() && b != right.end()) {
    const base::version_range shared{std::max(a->first, b->first), std::min(a->last, b->last)};
    if (shared.first <= shared.last) insert(both, shared);
    if (a->last < b->last)
      ++a;
    else
      ++b;
  }
  return both;
}

version_set up_to(version_set set, version_id last) {
  std::erase_if(set, [&](const auto& range) { return range.first > last; });
  if (!set.empty()) set.back().last = std::min(set.back().last, last);
  return set;
}

version_set from(version_set set, version_id first, std::optional<version_id> kept) {
  const bool keeps = kept && contains(set, *kept);
  std::erase_if(set, [&](const auto& range) { return range.last < first; });
  if (!set.empty()) set.front().first = std::max(set.front().first, first);
  insert(set, {{0}, {0}});
  if (keeps) insert(set, {*kept, *kept});
  return set;
}

std::string to_string(const version_set& set) {
  std::string text;
  for (const auto& range : set) {
    if (!text.empty()) text += ", ";
    text += range.first == range.last ? fmt::format("{}", range.first)
                                      : fmt::format("{} to {}", range.first, range.last);
  }
  return text.empty() ? "none" : text;
}

std::optional<version_id> greatest_up_to(const version_set& set, version_id bound) {
  const auto below = up_to(set, bound);
  if (below.empty()) return std::nullopt;
  return below.back().last;
}

} // namespace dlrun::protocol
