/// Whether a host lets a run have as many processes and threads as it needs.
#pragma once

#include "proto/job_spec.pb.h"

#include <cstdint>
#include <dlrun/error.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace dlrun::runtime {

/// Threads that the processes of a job have at once, about: those of the root (or an agent), the
/// coordinator, and of each of `hosts` hosts the same part of all workers and PS shards. Without
/// keepers, and what drivers of GPUs make.
std::uint64_t threads_needed(const spec::JobSpec& spec, std::size_t hosts);

/// Call this before anything is made for a run: a role whose threads cannot be made waits for them,
/// or is ended by a library. Makes as many threads, and ends them again: what may be had depends on
/// rights, on what else the user runs, and on the container.
/// @param hosts of the job
/// @returns system, naming the limits (RLIMIT_NPROC, pids.max) and what the job needs.
result<void> check_process_limit(const spec::JobSpec& spec, std::size_t hosts);

/// The same of a job that runs, before it has more workers: `scaled` is what it is to be. Of the
/// threads that these have on this host.
/// @param workers those that it has, or is about to have
result<void> check_process_limit_for_more(const spec::JobSpec& scaled, std::uint32_t workers,
                                          std::size_t hosts);

namespace process_limit {
/// What bounds the number of threads. Nothing: no bound.
struct thread_bounds {
  std::optional<std::uint64_t> of_user{};   ///< RLIMIT_NPROC, all processes of the user together
  std::optional<std::uint64_t> of_cgroup{}; ///< pids.max
};
/// For tests: `possible` of `needed` can be made, for `whom`. "" where that is enough, or nothing
/// bounds them: then memory lacks, which is not told here.
std::string tell_too_few(std::string_view whom, std::uint64_t possible, std::uint64_t needed,
                         const thread_bounds& bounds);
/// For tests: makes at most `count` threads that wait for each other. @returns how many there were.
std::uint64_t possible_threads(std::uint64_t count);
} // namespace process_limit

} // namespace dlrun::runtime
