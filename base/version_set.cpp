#include "base/version_set.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace dlrun::base {

bool contains(const version_set& set, version_id version) {
  return std::any_of(set.begin(), set.end(),
                     [&](const auto& range) { return range.first <= version && version <= range.last; });
}

void insert(version_set& set, version_range added) {
  const auto begins_after = [](const version_range& range, version_id version) {
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
    const version_range shared{std::max(a->first, b->first), std::min(a->last, b->last)};
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

} // namespace dlrun::base
