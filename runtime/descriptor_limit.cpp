#include "runtime/descriptor_limit.hpp"

#include "job/choices.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

namespace dlrun::runtime {
namespace {

/// Of the process of a role that has no peers: streams, data, bonds, sockets, and a PS shard's open
/// files.
constexpr std::uint64_t alone = 40;
/// For each peer: a connection of the control plane, a doorbell, segments on their way; or in the
/// root a pidfd, a log, memory for last words and for a PS shard's versions, twice while it is
/// started.
constexpr std::uint64_t each_peer = 12;

} // namespace

result<void> check_descriptor_limit(const spec::JobSpec& spec) {
  const auto& cluster = spec.cluster();
  const auto roles = static_cast<std::uint64_t>(cluster.workers() + cluster.ps_shards());
  const auto in_one_process = job::placement_of(spec) == job::placement::threads ? roles : 1;
  const auto needed = in_one_process * alone + each_peer * roles;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return {};
  return fail(
      error_code::system,
      fmt::format("a process may have {} files open here, and one of this job needs about {}: raise the "
                  "limit (ulimit -n {}), or take fewer cluster.workers and .ps_shards",
                  limit.rlim_cur, needed, needed));
}

} // namespace dlrun::runtime
