/// What `durability.replicas: auto` becomes for a job on these hosts.
#pragma once

#include "runtime/prepared_job.hpp"

#include <cstddef>
#include <cstdint>
#include <dlrun/report.hpp>
#include <string>

namespace dlrun::runtime {

/// How many stores each PS shard has, and why.
struct replicas_choice {
  std::uint32_t replicas = 1; ///< on as many hosts
  bool is_auto = false;       ///< the job leaves it open
  std::string reason;         ///< of `auto`, for people
  /// What the loss of a host costs a job that asks for fewer stores than it could have, and the way
  /// out; "" of any other.
  std::string degraded;
};

/// Pure. How many stores each PS shard of a job has that begins with so many hosts: what
/// durability.replicas says; of `auto` two where there are two hosts, and something that can be
/// copied.
std::uint32_t replicas_on(const spec::JobSpec& spec, std::size_t hosts);

/// Pure. The same, of a job that check_for_hosts() lets begin and whose durability.log is settled.
/// @param hosts as hosts_at_least(). bytes_per_step: of the record of a step, in all PS shards
replicas_choice choose_replicas(const spec::JobSpec& spec, std::size_t hosts, std::uint64_t bytes_per_step);
replicas_choice choose_replicas(const prepared_job& job, std::size_t hosts);

/// Pure. "; ..." for the reason of `auto`: how much of the time steps have waited for copies, by
/// the report of the starts before; "" where they had none.
std::string tell_copy_cost(const dlrun::report& so_far);

/// From here on the specification says the number. What is written down of the run keeps `auto`,
/// since its next start may have other hosts.
void set_replicas(const replicas_choice& choice, prepared_job& job);

} // namespace dlrun::runtime
