/// What `dlrun resume --set` may change of a run.
#pragma once

#include "proto/job_spec.pb.h"

#include <dlrun/error.hpp>

namespace dlrun::runtime {

/// How a changed specification relates to that of the run so far.
enum class spec_change : std::uint8_t {
  none,    ///< the same
  free,    ///< only what changes no bit: workers, placement, durability.sync, observability, ...
  revision ///< numbers of the optimizer, schedule, clipping, skipped slots: from here on another training
};

/// @returns bad_usage, naming what is changed and may not: the model, the data, the seed, the number of PS
/// shards, ..., since what is on disk belongs to them.
result<spec_change> compare_specs(const spec::JobSpec& before, const spec::JobSpec& after);

} // namespace dlrun::runtime
