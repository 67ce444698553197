/// Version 0: initial values of a model, or those of a weights file.
#pragma once

#include "actors/common/job_context.hpp"

#include <span>

namespace dlrun::ps_shard {

/// Fills `out` (range.size floats) with what training starts from: initial values by the seed, and
/// over them what train.init_from holds. Of that file only this range is read.
/// @returns bad_data when the file is gone, damaged, or does not fit the model; system.
result<void> initial_values(const common::job_context& job, const engine::shard_range& range,
                            std::span<float> out);

} // namespace dlrun::ps_shard
