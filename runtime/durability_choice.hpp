/// What `durability.log: auto` becomes for a job on this machine.
#pragma once

#include "runtime/microbatch_trial.hpp"
#include "runtime/prepared_job.hpp"
#include "runtime/run_folder.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace dlrun::runtime {

/// What was measured, and what follows.
struct durability_choice {
  std::string log;    ///< "every_step" or "snapshots"
  std::string reason; ///< the figures, for people
};

/// Logging every step is worth it up to this part of a step's time: what it costs in throughput, at
/// most. Where it is not, only the death of everything redoes steps (rule R36).
inline constexpr double log_share_max = 0.03;

/// Pure. `log_time`: to write down one step; `step_time`: to compute it.
durability_choice choose_durability(std::uint64_t bytes_per_step, std::chrono::duration<double> log_time,
                                    std::chrono::duration<double> step_time);

/// Pure. What a host costs that is lost with its disk where there are copies, with that `log`.
std::string_view cost_with_copies(std::string_view log);

/// How a microbatch of the job is tried.
using trial_way = std::function<result<microbatch_trial>(const prepared_job&)>;

/// Measures both, as a rule for a fraction of a second: one microbatch of the model, and writing to
/// the disk of `folder`, as fast as it takes it for long. Where a trial ends badly it is
/// "snapshots", which costs less.
result<durability_choice> measure_durability(const prepared_job& job, const std::filesystem::path& folder,
                                             const trial_way& try_one);

/// Decides what `durability.log: auto` is for this run, and keeps the decision in the folder.
/// @returns it; nothing for a job that says itself what it wants.
result<std::optional<durability_choice>> settle_durability(prepared_job& job, const run_folder& folder,
                                                           const trial_way& try_one);

} // namespace dlrun::runtime
