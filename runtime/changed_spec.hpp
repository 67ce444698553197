/// What `dlrun resume` may change of a run.
#pragma once

#include "job/spec_differences.hpp"

#include <dlrun/error.hpp>

namespace dlrun::runtime {

/// How a changed specification relates to that of the run so far.
enum class spec_change : std::uint8_t {
  none,    ///< the same
  free,    ///< only what changes no bit: workers, placement, durability.sync, observability, ...
  revision ///< numbers of the optimizer, schedule, clipping, skipped slots: from here on another training
};

/// The differences that a run does not take: keys whose rule is FIXED, an optimizer with another
/// state, a skipped slot that comes back.
std::vector<job::spec_difference> fixed_differences(const spec::JobSpec& before, const spec::JobSpec& after);

/// @returns bad_usage, naming each key that is changed and may not be, and all that may: the (rule)
/// of each key says which (proto/job_spec.proto).
result<spec_change> compare_specs(const spec::JobSpec& before, const spec::JobSpec& after);

/// "train.seed: 1 -> 2; train.epochs: 3 -> 2": the first few, and how many more there are. Each is
/// told in the words of `form`, a format of fmt for its path and both values.
std::string tell_changes(const std::vector<job::spec_difference>& changes,
                         std::string_view form = "{}: {} -> {}");

} // namespace dlrun::runtime
