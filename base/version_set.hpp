/// Runs of versions, and what can be said of sets of them.
#pragma once

#include <dlrun/ids.hpp>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::base {

/// Versions first to last, both included.
struct version_range {
  version_id first;
  version_id last;

  bool operator==(const version_range&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, version_range& x) {
    return f(x.first, x.last);
  }
};

/// Disjoint, ascending, not adjacent.
using version_set = std::vector<version_range>;

bool contains(const version_set& set, version_id version);
void insert(version_set& set, version_range added);
/// What both have.
version_set common(const version_set& left, const version_set& right);
/// Without what lies above `last`.
version_set up_to(version_set set, version_id last);
/// Without what lies below `first`; version 0 stays (R11: it is restorable without storage), and so
/// does `kept`, if it is in the set.
version_set from(version_set set, version_id first, std::optional<version_id> kept = std::nullopt);
/// The greatest of the set that is not above `bound`.
std::optional<version_id> greatest_up_to(const version_set& set, version_id bound);
/// For people: "0, 120 to 480".
std::string to_string(const version_set& set);

} // namespace dlrun::base
