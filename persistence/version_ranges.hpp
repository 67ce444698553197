/// Which versions can be rebuilt from which steps and snapshots.
#pragma once

#include "base/version_set.hpp"
#include "persistence/log_record.hpp"

#include <dlrun/ids.hpp>
#include <span>
#include <vector>

namespace dlrun::persistence {

/// The steps [first, end).
struct step_range {
  step_id first;
  step_id end;

  friend bool operator==(const step_range&, const step_range&) = default;
};

/// A set of steps that have records: few ranges, sorted and disjoint, usually one.
class step_set {
public:
  /// Adds `step`, which must be above all that are there.
  void add(step_id step);
  void cut_from(step_id first);
  void cut_below(step_id end);

  bool contains(step_id step) const;
  /// The first step from `step` on that is missing.
  step_id end_from(step_id step) const;
  const std::vector<step_range>& ranges() const { return ranges_; }

private:
  std::vector<step_range> ranges_;
};

/// The versions that can be rebuilt: from each of `bases` (versions that are stored whole, sorted;
/// version 0 always is one) as far as `steps` has no gap. Sorted and disjoint.
std::vector<base::version_range> restorable_versions(std::span<const version_id> bases,
                                                     const step_set& steps);

} // namespace dlrun::persistence
