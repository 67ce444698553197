#include "runtime/process_limit.hpp"

#include "base/own_machine.hpp"
#include "base/thread_team.hpp"
#include "job/choices.hpp"

#include <algorithm>
#include <climits>
#include <csignal>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <mutex>
#include <pthread.h>
#include <sys/resource.h>
#include <vector>

namespace dlrun::runtime {
namespace {

// Counted in jobs of one host (Threads in /proc/PID/status), two each those of CAF's scheduler.
constexpr std::uint64_t of_root = 10;
constexpr std::uint64_t of_coordinator = 14;
constexpr std::uint64_t of_worker = 13;   ///< beside those that compute
constexpr std::uint64_t of_ps_shard = 17; ///< beside those that help to sum
constexpr unsigned of_sums = 4;           ///< at most, as version_maker.cpp has it
/// Of those that are there for a moment: a role that is being started, RocksDB as it opens.
constexpr std::uint64_t in_passing = 8;
/// Of a larger job it is not tried whether it could have them all.
constexpr std::uint64_t tried_max = 4096;
constexpr std::size_t stack_bytes = 65536;

/// Waits until whoever has it lets it go.
void* wait_for(void* mutex) {
  const std::scoped_lock waited{*static_cast<std::mutex*>(mutex)};
  return nullptr;
}

process_limit::thread_bounds bounds_here() {
  process_limit::thread_bounds found{{}, base::cgroup_processes_max()};
  rlimit limit{};
  if (::getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    found.of_user = limit.rlim_cur;
  return found;
}

std::uint64_t part_of(std::int64_t all, std::size_t hosts) {
  const auto count = static_cast<std::uint64_t>(all);
  return (count + hosts - 1) / hosts;
}

std::uint64_t threads_of_worker(const spec::JobSpec& spec) {
  return of_worker + static_cast<std::uint64_t>(spec.cluster().threads_per_worker());
}

/// @param needed of them so many are tried, up to a bound
result<void> check_threads(std::string_view whom, std::uint64_t needed) {
  const auto bounds = bounds_here();
  if (!bounds.of_user && !bounds.of_cgroup) return {};
  const auto tried = std::min(needed, tried_max);
  const auto wrong = process_limit::tell_too_few(whom, process_limit::possible_threads(tried), tried, bounds);
  if (wrong.empty()) return {};
  return fail(error_code::system, wrong);
}

} // namespace

std::uint64_t process_limit::possible_threads(std::uint64_t count) {
  sigset_t all{}, before{};
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); // none of them is to handle a signal
  pthread_attr_t small{};
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small,
                            std::max<std::size_t>(stack_bytes, static_cast<std::size_t>(PTHREAD_STACK_MIN)));
  std::vector<pthread_t> made;
  std::mutex gate;
  {
    const std::scoped_lock closed{gate};
    for (pthread_t one{}; made.size() < count && pthread_create(&one, &small, wait_for, &gate) == 0;)
      made.push_back(one);
  }
  for (const auto one : made) pthread_join(one, nullptr);
  pthread_attr_destroy(&small);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return made.size();
}

std::string process_limit::tell_too_few(std::string_view whom, std::uint64_t possible, std::uint64_t needed,
                                        const thread_bounds& bounds) {
  if (possible >= needed) return "";
  std::vector<std::string> all;
  if (bounds.of_user) all.push_back(fmt::format("the user may have {} (ulimit -u)", *bounds.of_user));
  if (bounds.of_cgroup)
    all.push_back(fmt::format("the container, service or session may have {} (pids.max)", *bounds.of_cgroup));
  if (all.empty()) return "";
  return fmt::format("the processes of {} have about {} threads at once, and {} more can be made here: {}, "
                     "counting all that run already; raise that limit, or take fewer cluster.workers and "
                     ".ps_shards",
                     whom, needed, possible, fmt::join(all, ", "));
}

std::uint64_t threads_needed(const spec::JobSpec& spec, std::size_t hosts) {
  const auto& cluster = spec.cluster();
  const auto shards = static_cast<std::size_t>(cluster.ps_shards());
  const auto each_shard = of_ps_shard + base::fair_threads(shards, of_sums) - 1;
  return in_passing + of_root + of_coordinator + part_of(cluster.workers(), hosts) * threads_of_worker(spec) +
         part_of(cluster.ps_shards(), hosts) * each_shard;
}

/// The root has its threads not yet, but this one.
result<void> check_process_limit(const spec::JobSpec& spec, std::size_t hosts) {
  if (job::placement_of(spec) == job::placement::threads) return {};
  return check_threads("this job", threads_needed(spec, hosts) - 1);
}

result<void> check_process_limit_for_more(const spec::JobSpec& scaled, std::uint32_t workers,
                                          std::size_t hosts) {
  const auto wanted = part_of(scaled.cluster().workers(), hosts), there = part_of(workers, hosts);
  if (wanted <= there || job::placement_of(scaled) == job::placement::threads) return {};
  return check_threads("the workers that would come",
                       in_passing + (wanted - there) * threads_of_worker(scaled));
}

} // namespace dlrun::runtime
