#include "persistence/version_ranges.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::persistence {

void step_set::add(step_id step) {
  DLRUN_CHECK(ranges_.empty() || step >= ranges_.back().end, "step {} comes after step {}", step,
              ranges_.back().end.value - 1);
  const step_id end{step.value + 1};
  if (!ranges_.empty() && ranges_.back().end == step)
    ranges_.back().end = end;
  else
    ranges_.push_back({step, end});
}

void step_set::cut_from(step_id first) {
  while (!ranges_.empty() && ranges_.back().first >= first) ranges_.pop_back();
  if (!ranges_.empty()) ranges_.back().end = std::min(ranges_.back().end, first);
}

void step_set::cut_below(step_id end) {
  std::erase_if(ranges_, [&](const step_range& range) { return range.end <= end; });
  if (!ranges_.empty()) ranges_.front().first = std::max(ranges_.front().first, end);
}

bool step_set::contains(step_id step) const { return end_from(step) != step; }

step_id step_set::end_from(step_id step) const {
  for (const auto& range : ranges_)
    if (range.first <= step && step < range.end) return range.end;
  return step;
}

std::vector<base::version_range> restorable_versions(std::span<const version_id> bases,
                                                     const step_set& steps) {
  std::vector<base::version_range> found;
  const auto add_base = [&](version_id base) {
    const base::version_range range{base, {steps.end_from(step_from(base)).value}};
    if (!found.empty() && base <= found.back().last)
      found.back().last = std::max(found.back().last, range.last);
    else
      found.push_back(range);
  };
  add_base({0});
  for (const auto base : bases) add_base(base);
  return found;
}

} // namespace dlrun::persistence
