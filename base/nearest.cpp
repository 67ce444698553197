#include "base/nearest.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <vector>

namespace dlrun::base {
namespace {

constexpr std::size_t length_max = 200;

} // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  a = a.substr(0, length_max);
  b = b.substr(0, length_max);
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before_last, last);
    std::swap(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  std::string best;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (const auto& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

bool is_close(std::string_view word, std::string_view candidate) {
  return edit_distance(word, candidate) <= std::max<std::size_t>(1, candidate.size() / 3);
}

std::string hint(std::string_view word, std::span<const std::string> candidates) {
  if (candidates.empty()) return "no keys are valid here";
  const std::string best = nearest(word, candidates);
  if (is_close(word, best)) return fmt::format("did you mean \"{}\"?", best);
  return fmt::format("the nearest is \"{}\", valid are {}", best, fmt::join(candidates, ", "));
}

} // namespace dlrun::base
