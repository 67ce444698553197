/// How long a microbatch of a model takes on this machine, tried before a run begins.
#pragma once

#include "actors/agent/process/child_command.hpp"
#include "engine/cuda/compute_place.hpp"
#include "proto/job_spec.pb.h"

#include <chrono>
#include <cstdint>
#include <dlrun/error.hpp>
#include <functional>
#include <optional>
#include <string>

namespace dlrun::runtime {

/// What came of it.
struct microbatch_trial {
  /// The shortest; or, with `why`, the least that it takes. Nothing: that is not known either.
  std::optional<std::chrono::duration<double>> time{};
  std::string why{}; ///< it could not be tried to its end, for people
};

/// Told the time of each microbatch that was the shortest so far.
using trial_listener = std::function<void(std::chrono::duration<double>)>;

/// What is tried.
struct tried_model {
  const spec::JobSpec& spec;
  const engine::gpu_set& gpus;
  std::uint64_t records; ///< that are trained: a microbatch has no more
};

/// Gradients of a few microbatches of made-up records (zeros), on the calling thread. What the
/// layers of a program do to a process, they do to this one.
/// @returns the shortest time; else as engine::model::build() and engine::make_computer_at().
result<std::chrono::duration<double>> time_microbatch(const tried_model& what, const trial_listener& tell);

struct trial_options {
  agent::executable program; ///< begins with run_role(), which calls serve_trial()
  std::chrono::milliseconds patience{30'000};
  std::function<bool()> is_interrupted = [] { return false; }; ///< asked twenty times a second
};

/// The same in a process of its own, which may crash or hang without harm. Blocks until that has
/// ended, at most for the patience. @returns system when no process can be started.
result<microbatch_trial> try_microbatch(const tried_model& what, const trial_options& options);

/// The side of that process: leaves the time as its last words.
result<void> serve_trial(const tried_model& what, int last_words_fd);

} // namespace dlrun::runtime
