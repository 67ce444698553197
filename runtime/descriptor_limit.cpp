#include "runtime/descriptor_limit.hpp"

#include "job/choices.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fmt/format.h>
#include <iterator>
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
constexpr std::ptrdiff_t streams = 3;

/// Beyond the three streams: inherited from whoever called the command, and most of them kept.
std::uint64_t open_already() {
  std::error_code ignored;
  const std::filesystem::directory_iterator all{"/proc/self/fd", ignored};
  const auto count = std::distance(begin(all), end(all)) - 1; // that of this look
  return static_cast<std::uint64_t>(std::max<std::ptrdiff_t>(0, count - streams));
}

} // namespace

result<void> check_descriptor_limit(const spec::JobSpec& spec) {
  const auto& cluster = spec.cluster();
  const auto roles = static_cast<std::uint64_t>(cluster.workers() + cluster.ps_shards());
  const auto in_one_process = job::placement_of(spec) == job::placement::threads ? roles : 1;
  static const auto open = open_already(); // a run that goes on has more, which are counted below
  const auto needed = in_one_process * alone + each_peer * roles + open;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return {};
  return fail(
      error_code::system,
      fmt::format("a process may have {} files open here, and one of this job needs about {}{}: raise the "
                  "limit (ulimit -n {}), or take fewer cluster.workers and .ps_shards",
                  limit.rlim_cur, needed,
                  open == 0 ? "" : fmt::format(", with {} that are open already", open), needed));
}

} // namespace dlrun::runtime
